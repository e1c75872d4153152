-- Gives the name of a local storage to a folder (N1). ARGV: numbers of appDB and configDB; name, escaped; id of the folder; its place, for
-- people; '1': take the name from another folder. Answers '', or the place of the folder that has the name.
local app, config, name, id = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
redis.call('SELECT', config)
local old = redis.call('HGET', 'w:storages', name)
local other = old and string.match(old, '^%S+') ~= id
if other and ARGV[6] ~= '1' then
    return string.match(old, '^%S+ (.*)$')
end
redis.call('HSET', 'w:storages', name, id .. ' ' .. ARGV[5])
if other then
    redis.call('SELECT', app) -- the rows of this folder's outbox have numbers of their own
    redis.call('DEL', 'w:tap:' .. name)
    redis.call('SELECT', config)
end
return ''
