-- Makes due tasks pending. ARGV: queue, at most. Answers how many.
local time = redis.call('TIME')
local since = time[1] .. string.format('%06d000', time[2])
local prefix = 'asynq:{' .. ARGV[1] .. '}:'
local moved = 0
for _, set in ipairs({'scheduled', 'retry'}) do
    local ids = redis.call('ZRANGEBYSCORE', prefix .. set, '-inf', time[1], 'LIMIT', 0, ARGV[2])
    for i = 1, #ids do
        redis.call('ZREM', prefix .. set, ids[i])
        redis.call('HSET', prefix .. 't:' .. ids[i], 'state', 'pending', 'pending_since', since)
        redis.call('LPUSH', prefix .. 'pending', ids[i])
    end
    moved = moved + #ids
end
if moved > 0 then
    redis.call('PUBLISH', 'weir:queue', '')
end
return moved
