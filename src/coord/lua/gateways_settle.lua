-- A process tells that everything that was answered by a time has been recorded. ARGV: the time (ms), local storages. Answers now.
for i = 2, #ARGV do
    redis.call('HSET', 'w:settled', ARGV[i], ARGV[1])
end
local time = redis.call('TIME')
return time[1] * 1000 + math.floor(time[2] / 1000)
