-- end_task() records the outcome of an active task. Token '': the caller does not hold the task, but the task's lease
-- has ended (queue_expired).
-- Outcomes: done; completed (the task is kept for `seconds`); retry (after `seconds`); archived; pending (back to the
-- front of the queue).
-- Counter: '' (none), 'processed', or 'failed' (which counts as both). Answers 1; 0: the task is not active, or has
-- another token.
-- include part_tally
local function count_day(prefix, name, day, life)
    local daily = prefix .. name .. ':' .. day
    if redis.call('INCR', daily) == 1 then
        redis.call('EXPIRE', daily, life)
    end
    redis.call('INCR', prefix .. name)
end
local function holds_task(prefix, id, token)
    if token == '' then
        local lease = redis.call('ZSCORE', prefix .. 'lease', id)
        return lease and (tonumber(lease) <= tonumber(time[1]) or tonumber(lease) >= time[1] + 60)
    end
    return redis.call('HGET', prefix .. 't:' .. id, 'token') == token
end
local function end_task(queue, id, outcome, message, seconds, counter, day, life, token)
    local prefix = 'asynq:{' .. queue .. '}:'
    local key = prefix .. 't:' .. id
    if not holds_task(prefix, id, token) or redis.call('LREM', prefix .. 'active', 0, id) == 0 then
        return 0
    end
    redis.call('ZREM', prefix .. 'lease', id)
    local row = redis.call('HMGET', key, 'unique_key', 'tally')
    local ended = outcome == 'done' or outcome == 'completed'
    redis.call('HDEL', key, 'token')
    if ended and row[2] then
        redis.call('HDEL', key, 'tally')
    end
    if ended and row[1] and redis.call('GET', row[1]) == id then
        redis.call('DEL', row[1])
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
    if row[2] and (ended or outcome == 'archived') then
        tally_count(row[2], ended and 'done' or 'failed')
    end
    if counter ~= '' then
        count_day(prefix, 'processed', day, life)
    end
    if counter == 'failed' then
        count_day(prefix, 'failed', day, life)
    end
    return 1
end
