-- Moves scheduled tasks to a later time. ARGV: queue, delay from now (s), ids. Answers how many tasks were moved.
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
