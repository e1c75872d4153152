-- Prolongs leases. ARGV: queue, length of the lease (s), pairs of task id and token. Answers the ids of tasks that are
-- not leased with their token any more.
local lease = 'asynq:{' .. ARGV[1] .. '}:lease'
local ends = redis.call('TIME')[1] + ARGV[2]
local lost = {}
for i = 3, #ARGV, 2 do
    local key = 'asynq:{' .. ARGV[1] .. '}:t:' .. ARGV[i]
    if redis.call('ZSCORE', lease, ARGV[i]) and redis.call('HGET', key, 'token') == ARGV[i + 1] then
        redis.call('ZADD', lease, 'XX', ends, ARGV[i])
    else
        lost[#lost + 1] = ARGV[i]
    end
end
return lost
