-- Runs a task at once, or deletes it. ARGV: queue, id, 'run' or 'delete'. Answers 1, 0 not there, -1 active.
local prefix = 'asynq:{' .. ARGV[1] .. '}:'
local key = prefix .. 't:' .. ARGV[2]
local state = redis.call('HGET', key, 'state')
if not state then
    return 0
end
if state == 'active' then
    return -1
end
if state == 'pending' then
    if ARGV[3] == 'run' then
        return 1
    end
    redis.call('LREM', prefix .. 'pending', 0, ARGV[2])
else
    redis.call('ZREM', prefix .. state, ARGV[2])
end
if ARGV[3] == 'run' then
    local time = redis.call('TIME')
    redis.call('HSET', key, 'state', 'pending', 'pending_since', time[1] .. string.format('%06d000', time[2]))
    redis.call('LPUSH', prefix .. 'pending', ARGV[2])
    redis.call('PUBLISH', 'weir:queue', '')
else
    local unique = redis.call('HGET', key, 'unique_key')
    if unique and redis.call('GET', unique) == ARGV[2] then
        redis.call('DEL', unique)
    end
    redis.call('DEL', key)
end
return 1
