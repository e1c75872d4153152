-- Changes a route, the main storage or a block, unless a replication or a switch relies on it (docs/replication.md,
-- P6).
-- ARGV is one of these (* marks an argument that is escaped as in keys):
--   'route', user*, bucket* ('': all buckets of the user), storage ('': remove the policy), and the storage to which
--     the route leads without any policy
--   'main', key, storage
--   'block' or 'unblock', storage*, bucket*, and the bucket once more, not escaped
-- Answers {'ok'}, or a refusal: its reason ('source', 'switch', 'destination', 'copies'), the bucket ('': all buckets
-- of the user) and the storage.
local function raw(part)
    return (string.gsub(part, '%%(%x%x)', function(hex) return string.char(tonumber(hex, 16)) end))
end
-- Calls fn(user, bucket, key) for the keys <prefix><user>[:<bucket>], and answers the first result that is not false or
-- nil.
local function find(prefix, fn)
    local cursor = '0'
    repeat
        local page = redis.call('SCAN', cursor, 'MATCH', prefix .. '*', 'COUNT', 1000)
        for _, key in ipairs(page[2]) do
            local user, bucket = string.match(string.sub(key, #prefix + 1), '^([^:]*):?(.*)$')
            local found = fn(user, bucket, key)
            if found then
                return found
            end
        end
        cursor = page[1]
    until cursor == '0'
end
local function switch_of(user, bucket)
    local row = redis.call('HMGET', 'p:switch:' .. user .. ':' .. bucket, 'lastStatus', 'replicationID')
    return row[1] and row[1] ~= 'done' and row[2]
end
-- Answers a refusal if a replication or a switch does not allow that the route of this user or bucket leads to this
-- storage. `always`: the bucket's own policy is to be removed, which a replication never allows.
local function held(user, bucket, storage, always)
    local members = redis.call('ZRANGE', 'p:repl:' .. user .. (bucket ~= '' and ':' .. bucket or ''), 0, 0)
    local from = members[1] and raw(string.match(members[1], '^[^:]*'))
    if bucket ~= '' and switch_of(user, bucket) then
        return {'switch', raw(bucket), ''}
    end
    return from and (from ~= storage or always) and {'source', raw(bucket), from}
end
-- When a policy leads a route to a copy, release_copy() makes the copy a bucket of its own, unless a replication or a
-- switch needs the place (docs/forward.md, B4). If the copy's owner used the bucket at another place until now, that
-- place is a copy from then on.
local function escape(storage)
    return (string.gsub(storage, '[%%:]', {['%'] = '%25', [':'] = '%3A'}))
end
local function release_copy(user, bucket, storage)
    local place = escape(storage)
    local owner = redis.call('HGET', 'w:copies', place .. ':' .. bucket)
    if not owner then
        return nil
    end
    for _, member in ipairs(redis.call('ZRANGE', 'p:repl:' .. owner .. ':' .. bucket, 0, -1)) do
        if string.match(member, '^[^:]*:([^:]*)$') == place then
            return {'destination', raw(bucket), storage}
        end
    end
    if switch_of(owner, bucket) then
        return {'switch', raw(bucket), ''}
    end
    redis.call('HDEL', 'w:copies', place .. ':' .. bucket)
    local left = redis.call('GET', 'p:route:' .. user .. ':' .. bucket)
    if owner == user and left and left ~= storage then
        redis.call('HSET', 'w:copies', escape(left) .. ':' .. bucket, user)
    end
end
-- Answers a refusal if the bucket has copies: without a policy of its own, its route could lead to one of them.
local function has_copies(user, bucket)
    local places = redis.call('HGETALL', 'w:copies')
    for i = 1, #places, 2 do
        local storage, name = string.match(places[i], '^([^:]*):(.*)$')
        if name == bucket and places[i + 1] == user then
            return {'copies', raw(bucket), raw(storage)}
        end
    end
end
local function has_policy(user, bucket)
    return bucket ~= '' and redis.call('EXISTS', 'p:route:' .. user .. ':' .. bucket) == 1
end
local change = {}
function change.route(user, bucket, storage, otherwise)
    local key = 'p:route:' .. user .. (bucket ~= '' and ':' .. bucket or '')
    local target = storage ~= '' and storage or bucket ~= '' and redis.call('GET', 'p:route:' .. user) or otherwise
    local found
    if bucket ~= '' then
        found = held(user, bucket, target, storage == '')
            or storage == '' and has_copies(user, bucket) or storage ~= '' and release_copy(user, bucket, target)
    else
        found = find('p:repl:', function(owner, name)
            return owner == user and not has_policy(owner, name) and held(owner, name, target)
        end)
    end
    if found then
        return found
    end
    redis.call('SREM', 'w:pins', user .. ':' .. bucket)
    if storage ~= '' then
        redis.call('SET', key, storage)
    else
        redis.call('DEL', key)
    end
end
function change.main(key, storage)
    local found = find('p:repl:', function(user, bucket)
        return redis.call('EXISTS', 'p:route:' .. user) == 0 and not has_policy(user, bucket) and held(user, bucket, storage)
    end)
    if found then
        return found
    end
    redis.call('SET', key, storage)
end
-- Answers a refusal if the bucket is being switched from or to this storage, because a switch sets and ends blocks
-- itself.
local function find_switch(storage, bucket, name)
    return find('p:switch:', function(user, of)
        local id = of == bucket and switch_of(user, of)
        local from, to = string.match(id or '', '^[^:]*:[^:]*:([^:]*):([^:]*)')
        return (from == storage or to == storage) and {'switch', name, ''}
    end)
end
function change.block(storage, bucket, name)
    local found = find_switch(storage, bucket, name)
    if found then
        return found
    end
    redis.call('SADD', 'p:route_block:' .. storage, name)
end
function change.unblock(storage, bucket, name)
    local found = find_switch(storage, bucket, name) or find('p:repl:', function(_, _, key)
        for _, member in ipairs(redis.call('ZRANGE', key, 0, -1)) do
            local to, other = string.match(member, '^[^:]*:([^:]*):(.*)$')
            if to == storage and other == bucket then
                return {'destination', name, raw(storage)}
            end
        end
    end)
    if found then
        return found
    end
    redis.call('SREM', 'p:route_block:' .. storage, name)
end
local found = change[ARGV[1]](ARGV[2], ARGV[3], ARGV[4], ARGV[5])
if found then
    return found
end
redis.call('INCR', 'w:config')
redis.call('PUBLISH', 'weir:routes', 'changed')
return {'ok'}
