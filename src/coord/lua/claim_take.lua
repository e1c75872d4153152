-- Gives the name of a local storage to a folder (docs/replication.md, N1).
-- ARGV: numbers of appDB and configDB; the name, escaped; id of the folder; place of the folder, as text for people;
-- '1': take the name even if another folder has it.
-- Answers '', or the place of the other folder that has the name.
local app, config, name, id = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
redis.call('SELECT', config)
local old = redis.call('HGET', 'w:storages', name)
local other = old and string.match(old, '^%S+') ~= id
if other and ARGV[6] ~= '1' then
    return string.match(old, '^%S+ (.*)$')
end
redis.call('HSET', 'w:storages', name, id .. ' ' .. ARGV[5])
if other then
    redis.call('SELECT', app) -- w:tap has the number of a row in the other folder's outbox
    redis.call('DEL', 'w:tap:' .. name)
    redis.call('SELECT', config)
end
return ''
