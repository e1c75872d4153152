-- Adds tasks. ARGV for each: queue, id, message, delay (s; 0: at once), unique key, its life (s). Times are the store's.
-- Answers for each: 1 added, 0 the id is there, -1 the unique key is taken.
local time = redis.call('TIME')
local since = time[1] .. string.format('%06d000', time[2])
local result = {}
local known = {}
local wake = false
for i = 1, #ARGV, 6 do
    local queue, id, message, delay = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
    local unique, life = ARGV[i + 4], ARGV[i + 5]
    local prefix = 'asynq:{' .. queue .. '}:'
    local key = prefix .. 't:' .. id
    local state = redis.call('HGET', key, 'state')
    local answer = 1
    if state and state ~= 'archived' and state ~= 'completed' then
        answer = 0
    elseif unique ~= '' and not redis.call('SET', unique, id, 'NX', 'EX', life) then
        answer = -1
    end
    if answer == 1 then
        if state then
            redis.call('ZREM', prefix .. state, id)
            redis.call('DEL', key)
        end
        if not known[queue] then
            redis.call('SADD', 'asynq:queues', queue)
            known[queue] = true
        end
        if delay ~= '0' then
            redis.call('HSET', key, 'msg', message, 'state', 'scheduled')
            redis.call('ZADD', prefix .. 'scheduled', time[1] + delay, id)
        else
            redis.call('HSET', key, 'msg', message, 'state', 'pending', 'pending_since', since)
            if redis.call('LPUSH', prefix .. 'pending', id) == 1 then
                wake = true
            end
        end
        if unique ~= '' then
            redis.call('HSET', key, 'unique_key', unique)
        end
    end
    result[#result + 1] = answer
end
if wake then
    redis.call('PUBLISH', 'weir:queue', '')
end
return result
