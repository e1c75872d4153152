-- Up to when everything that was answered of a local storage is recorded, and now (ms). ARGV: storage.
local time = redis.call('TIME')
return {tonumber(redis.call('HGET', 'w:settled', ARGV[1]) or '0'), time[1] * 1000 + math.floor(time[2] / 1000)}
