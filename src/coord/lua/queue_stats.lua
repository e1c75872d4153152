-- Answers the numbers of every queue. ARGV: today's date. For each queue: name; sizes of pending, active, scheduled,
-- retry, archived, completed; tasks processed and failed in all; tasks processed and failed today; age of the oldest
-- pending task (ms); 1 if the queue is paused.
local names = redis.call('SMEMBERS', 'asynq:queues')
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local result = {}
for i = 1, #names do
    local prefix = 'asynq:{' .. names[i] .. '}:'
    local oldest = redis.call('LINDEX', prefix .. 'pending', -1)
    local since = oldest and redis.call('HGET', prefix .. 't:' .. oldest, 'pending_since')
    result[i] = {
        names[i],
        redis.call('LLEN', prefix .. 'pending'),
        redis.call('LLEN', prefix .. 'active'),
        redis.call('ZCARD', prefix .. 'scheduled'),
        redis.call('ZCARD', prefix .. 'retry'),
        redis.call('ZCARD', prefix .. 'archived'),
        redis.call('ZCARD', prefix .. 'completed'),
        redis.call('GET', prefix .. 'processed') or '0',
        redis.call('GET', prefix .. 'failed') or '0',
        redis.call('GET', prefix .. 'processed:' .. ARGV[1]) or '0',
        redis.call('GET', prefix .. 'failed:' .. ARGV[1]) or '0',
        since and math.max(0, now - math.floor(since / 1000000)) or 0,
        redis.call('EXISTS', prefix .. 'paused'),
    }
end
return result
