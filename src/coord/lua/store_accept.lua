-- An administrator says that the store is right as it is (docs/store-redis.md, I6). ARGV: 'empty' or 'older', id of the installation, number
-- of changes of the configuration that the process has seen. Answers {'ok'}, or the state that the store is in instead.
-- include part_back
local id = redis.call('HGET', 'w:installation', 'id')
if id and id ~= ARGV[2] then
    return {'other'}
end
if (ARGV[1] == 'empty') == (id and true or false) then
    return {id and 'known' or 'empty'}
end
redis.call('HSET', 'w:installation', 'id', ARGV[2])
config_settled(tonumber(ARGV[3]))
went_back()
return {'ok'}
