-- Accepts the store as it is, because an administrator says that it is right (docs/store-redis.md, I6).
-- ARGV: the state to accept, 'empty' or 'older'; id of the installation; number of changes of the configuration that
-- the process has seen. Answers {'ok'}, or the state in which the store is instead.
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
