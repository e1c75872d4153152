-- Takes the name of a local storage for a folder (N1). ARGV: databases of vectors, of policies; name, escaped; id of the folder; where it
-- is, for people; '1': from whoever has it. Answers '' or where the folder is that has it.
local app, config, name, id = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
redis.call('SELECT', config)
local old = redis.call('HGET', 'w:storages', name)
local other = old and string.match(old, '^%S+') ~= id
if other and ARGV[6] ~= '1' then
    return string.match(old, '^%S+ (.*)$')
end
redis.call('HSET', 'w:storages', name, id .. ' ' .. ARGV[5])
if other then
    redis.call('SELECT', app) -- rows of this folder have other numbers
    redis.call('DEL', 'w:tap:' .. name)
    redis.call('SELECT', config)
end
return ''
