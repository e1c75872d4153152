-- The outcome of a task that is active. ARGV: queue, id, outcome, message, seconds, counter, day, life of the day's counters,
-- token; an empty token: only when its lease has ended.
-- Outcomes: done; completed (kept for the seconds), retry (after them), archived; pending: back to the head of the line.
-- counter: '' none, 'processed', or 'failed' (counts as both). Answers 1, or 0 when it is not active, or not with this token.
local queue, id, outcome, message, seconds = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local counter, day, life = ARGV[6], ARGV[7], ARGV[8]
local time = redis.call('TIME')
local prefix = 'asynq:{' .. queue .. '}:'
local key = prefix .. 't:' .. id
if ARGV[9] == '' then
    local lease = redis.call('ZSCORE', prefix .. 'lease', id)
    if not lease or tonumber(lease) > tonumber(time[1]) then
        return 0
    end
elseif redis.call('HGET', key, 'token') ~= ARGV[9] then
    return 0
end
if redis.call('LREM', prefix .. 'active', 0, id) == 0 then
    return 0
end
redis.call('ZREM', prefix .. 'lease', id)
redis.call('HDEL', key, 'token')
if outcome == 'done' or outcome == 'completed' then
    local unique = redis.call('HGET', key, 'unique_key')
    if unique and redis.call('GET', unique) == id then
        redis.call('DEL', unique)
    end
end
if outcome == 'done' then
    redis.call('DEL', key)
elseif outcome == 'pending' then
    redis.call('HSET', key, 'state', 'pending', 'pending_since', time[1] .. string.format('%06d000', time[2]))
    redis.call('RPUSH', prefix .. 'pending', id)
    redis.call('PUBLISH', 'weir:queue', '')
else
    redis.call('HSET', key, 'msg', message, 'state', outcome)
    redis.call('ZADD', prefix .. outcome, time[1] + seconds, id)
end
if counter ~= '' then
    local names = {'processed'}
    if counter == 'failed' then
        names[2] = 'failed'
    end
    for i = 1, #names do
        local daily = prefix .. names[i] .. ':' .. day
        if redis.call('INCR', daily) == 1 then
            redis.call('EXPIRE', daily, life)
        end
        redis.call('INCR', prefix .. names[i])
    end
end
return 1
