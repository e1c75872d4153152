-- Completes replications that an older weir made, which had no list of copies: sets the bucket policy of their owner,
-- and enters their destinations in w:copies (docs/forward.md, B3). Only the first run does anything. Answers how many
-- places were added to w:copies.
local function raw(part)
    return (string.gsub(part, '%%(%x%x)', function(hex) return string.char(tonumber(hex, 16)) end))
end
local function each(prefix, fn)
    local cursor = '0'
    repeat
        local page = redis.call('SCAN', cursor, 'MATCH', prefix .. '*', 'COUNT', 1000)
        for _, key in ipairs(page[2]) do
            fn(string.sub(key, #prefix + 1), key)
        end
        cursor = page[1]
    until cursor == '0'
end
local added = 0
local function copy(storage, bucket, user)
    added = added + redis.call('HSETNX', 'w:copies', storage .. ':' .. bucket, user)
end
if redis.call('EXISTS', 'w:pinned') == 1 then
    return 0
end
each('p:repl:', function(name, key)
    local user, bucket = string.match(name, '^([^:]*):(.+)$')
    for _, member in ipairs(user and redis.call('ZRANGE', key, 0, -1) or {}) do
        local from, to, other = string.match(member, '^([^:]*):([^:]*):?(.*)$')
        if redis.call('SETNX', 'p:route:' .. name, raw(from)) == 1 then
            redis.call('SADD', 'w:pins', name)
        end
        if other == '' then
            copy(to, bucket, user)
        end
    end
end)
-- The sides that switches have left are copies too.
each('p:repl_st:', function(name, key)
    local user, bucket, from, _, other = string.match(name, '^([^:]*):([^:]*):([^:]*):([^:]*):?(.*)$')
    local route = user and redis.call('GET', 'p:route:' .. user .. ':' .. bucket)
    if route and route ~= raw(from) and other == '' and redis.call('HGET', key, 'archived') == '1' then
        copy(from, bucket, user)
    end
end)
redis.call('SET', 'w:pinned', '1')
return added
