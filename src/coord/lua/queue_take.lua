-- Takes the oldest task of the first queue that has a task. ARGV: length of the lease (s), token, queues. Answers
-- {queue, message}; nil: no queue has a task.
for i = 3, #ARGV do
    local prefix = 'asynq:{' .. ARGV[i] .. '}:'
    -- Most queues are empty, and cost only this one command.
    if redis.call('LLEN', prefix .. 'pending') > 0 and redis.call('EXISTS', prefix .. 'paused') == 0 then
        local id = redis.call('RPOPLPUSH', prefix .. 'pending', prefix .. 'active')
        while id do
            local key = prefix .. 't:' .. id
            local message = redis.call('HGET', key, 'msg')
            if message then
                redis.call('HSET', key, 'state', 'active', 'token', ARGV[2])
                redis.call('HDEL', key, 'pending_since')
                redis.call('ZADD', prefix .. 'lease', redis.call('TIME')[1] + ARGV[1], id)
                return {ARGV[i], message}
            end
            redis.call('LREM', prefix .. 'active', 0, id)
            id = redis.call('RPOPLPUSH', prefix .. 'pending', prefix .. 'active')
        end
    end
end
return false
