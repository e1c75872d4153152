-- Pushes leases back. ARGV: queue, length (s), ids. Answers the ids that are not leased any more.
local lease = 'asynq:{' .. ARGV[1] .. '}:lease'
local ends = redis.call('TIME')[1] + ARGV[2]
local lost = {}
for i = 3, #ARGV do
    if redis.call('ZSCORE', lease, ARGV[i]) then
        redis.call('ZADD', lease, 'XX', ends, ARGV[i])
    else
        lost[#lost + 1] = ARGV[i]
    end
end
return lost
