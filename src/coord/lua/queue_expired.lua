-- Messages of tasks whose lease ended. ARGV: queue, at most.
local prefix = 'asynq:{' .. ARGV[1] .. '}:'
local ids = redis.call('ZRANGEBYSCORE', prefix .. 'lease', '-inf', redis.call('TIME')[1], 'LIMIT', 0, ARGV[2])
local messages = {}
for i = 1, #ids do
    local message = redis.call('HGET', prefix .. 't:' .. ids[i], 'msg')
    if message then
        messages[#messages + 1] = message
    else
        redis.call('ZREM', prefix .. 'lease', ids[i])
        redis.call('LREM', prefix .. 'active', 0, ids[i])
    end
end
return messages
