-- Records that all changes of a process that clients had an answer for by a certain time are in the store.
-- ARGV: that time (ms), names of the process's local storages. Answers the store's time (ms).
for i = 2, #ARGV do
    redis.call('HSET', 'w:settled', ARGV[i], ARGV[1])
end
local time = redis.call('TIME')
return time[1] * 1000 + math.floor(time[2] / 1000)
