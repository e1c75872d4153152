-- Makes scheduled and retried tasks pending when their time has come. ARGV: most tasks of a queue and state, queues.
-- Answers how many tasks were moved.
local time = redis.call('TIME')
local since = time[1] .. string.format('%06d000', time[2])
local moved = 0
for q = 2, #ARGV do
    local prefix = 'asynq:{' .. ARGV[q] .. '}:'
    for _, set in ipairs({'scheduled', 'retry'}) do
        local ids = redis.call('ZRANGEBYSCORE', prefix .. set, '-inf', time[1], 'LIMIT', 0, ARGV[1])
        for i = 1, #ids do
            redis.call('ZREM', prefix .. set, ids[i])
            redis.call('HSET', prefix .. 't:' .. ids[i], 'state', 'pending', 'pending_since', since)
            redis.call('LPUSH', prefix .. 'pending', ids[i])
        end
        moved = moved + #ids
    end
end
if moved > 0 then
    redis.call('PUBLISH', 'weir:queue', '')
end
return moved
