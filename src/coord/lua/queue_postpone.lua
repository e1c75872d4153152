-- Pushes scheduled tasks back. ARGV: queue, delay (s), ids. Answers how many.
local scheduled = 'asynq:{' .. ARGV[1] .. '}:scheduled'
local due = redis.call('TIME')[1] + ARGV[2]
local moved = 0
for i = 3, #ARGV do
    if redis.call('ZSCORE', scheduled, ARGV[i]) then
        redis.call('ZADD', scheduled, 'XX', due, ARGV[i])
        moved = moved + 1
    end
end
return moved
