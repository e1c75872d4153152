-- Restores the configuration from a copy, in pages. The installation is known again when the last page was written.
-- ARGV: 'begin', id of the installation, '1' to replace a configuration; or 'page', id, then for each command the
-- number of its words and the words; or 'end', id, number of changes of the configuration that the process has seen.
-- Answers {'ok'}; {'other'}: the store is another installation's; {'full'}: it has a configuration; {'gone'}: another
-- restore was begun since.
-- include part_back
local step, mine = ARGV[1], ARGV[2]
local id = redis.call('HGET', 'w:installation', 'id')
if id and id ~= mine then
    return {'other'}
end
local function is_kept(key)
    return string.sub(key, 1, 2) == 'w:' and key ~= 'w:storages' and key ~= 'w:copies' and key ~= 'w:pins'
end
if step == 'begin' then
    local found, settings, cursor = {}, 0, '0'
    repeat
        local page = redis.call('SCAN', cursor, 'COUNT', 1000)
        for _, key in ipairs(page[2]) do
            if not is_kept(key) then
                found[#found + 1] = key
                -- Users alone are not a configuration, because the first start on an empty store writes them.
                settings = settings + (string.sub(key, 1, 6) ~= 'users:' and 1 or 0)
            end
        end
        cursor = page[1]
    until cursor == '0'
    local again = redis.call('HGET', 'w:installation', 'restoring') == mine
    if not again and ARGV[3] ~= '1' and settings > 0 then
        return {'full'}
    end
    for _, key in ipairs(found) do
        redis.call('DEL', key)
    end
    redis.call('HDEL', 'w:installation', 'id')
    redis.call('HSET', 'w:installation', 'restoring', mine)
    return {'ok'}
end
if redis.call('HGET', 'w:installation', 'restoring') ~= mine then
    return {'gone'}
end
if step == 'page' then
    local at = 3
    while at <= #ARGV do
        local words = tonumber(ARGV[at])
        redis.call(unpack(ARGV, at + 1, at + words))
        at = at + 1 + words
    end
    return {'ok'}
end
redis.call('HDEL', 'w:installation', 'restoring')
redis.call('HSET', 'w:installation', 'id', mine)
config_settled(tonumber(ARGV[3]))
went_back()
return {'ok'}
