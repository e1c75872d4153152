-- Answers the time (ms) up to which all answered changes of a local storage are recorded, and the store's time (ms).
-- ARGV: name of the storage.
local time = redis.call('TIME')
return {tonumber(redis.call('HGET', 'w:settled', ARGV[1]) or '0'), time[1] * 1000 + math.floor(time[2] / 1000)}
