-- Answers the tasks whose lease has ended, each as {queue, message}. A lease that ends later than any lease that the
-- present clock gives (30 s) has ended too: the clock went back, and a worker that lives prolongs its leases.
-- ARGV: most tasks of each queue, queues.
local now = redis.call('TIME')[1]
local result = {}
for q = 2, #ARGV do
    local prefix = 'asynq:{' .. ARGV[q] .. '}:'
    local ids = redis.call('ZRANGEBYSCORE', prefix .. 'lease', '-inf', now, 'LIMIT', 0, ARGV[1])
    if #ids == 0 then
        ids = redis.call('ZRANGEBYSCORE', prefix .. 'lease', now + 60, '+inf', 'LIMIT', 0, ARGV[1])
    end
    for i = 1, #ids do
        local message = redis.call('HGET', prefix .. 't:' .. ids[i], 'msg')
        if message then
            result[#result + 1] = {ARGV[q], message}
        else
            redis.call('ZREM', prefix .. 'lease', ids[i])
            redis.call('LREM', prefix .. 'active', 0, ids[i])
        end
    end
end
return result
