-- enqueue() adds a task; flush() then moves all added tasks into their queues and wakes workers. `delay` is in seconds,
-- '0': at once. `unique` is a key that the task holds for `life` seconds; '': none. Each task takes few commands,
-- because a thousand tasks are added at once while others wait.
-- enqueue() answers 1 if the task was added, 0 if its id exists, -1 if another task holds the unique key; then whether
-- `tally` (nil: none) must be counted.
-- include part_tally
local since = time[1] .. string.format('%06d000', time[2])
local lines = {}
-- `row`: the state and the tally of the task with this id, if they were read already.
local function enqueue(queue, id, message, delay, unique, life, tally, row)
    local prefix = 'asynq:{' .. queue .. '}:'
    local key = prefix .. 't:' .. id
    row = row or redis.call('HMGET', key, 'state', 'tally')
    local state, old = row[1], row[2]
    local same = old and (not tally or tally_same(old, tally))
    if state and state ~= 'archived' and state ~= 'completed' then
        if tally and not same then
            redis.call('HSET', key, 'tally', tally)
        end
        return 0, tally and not same
    end
    if unique ~= '' and not redis.call('SET', unique, id, 'NX', 'EX', life) then
        return -1, false
    end
    if state then
        redis.call('ZREM', prefix .. state, id)
        redis.call('DEL', key)
    end
    if old then
        tally_count(old, 'again')
    end
    local fields = {'msg', message, 'state', 'scheduled'}
    local line = lines[queue] or {}
    lines[queue] = line
    if delay ~= '0' then
        redis.call('ZADD', prefix .. 'scheduled', time[1] + delay, id)
    else
        fields = {'msg', message, 'state', 'pending', 'pending_since', since}
        line[#line + 1] = id
    end
    if unique ~= '' then
        fields[#fields + 1], fields[#fields + 2] = 'unique_key', unique
    end
    if same or tally then
        fields[#fields + 1], fields[#fields + 2] = 'tally', same and old or tally
    end
    redis.call('HSET', key, unpack(fields))
    return 1, tally and not same
end
-- Answers the message with another id, which is field 3. A second field 3 is appended, because in protobuf the last one
-- counts. Ids are shorter than 16 KiB.
local function message_as(message, id)
    local length = #id < 128 and string.char(#id) or string.char(128 + #id % 128, math.floor(#id / 128))
    return message .. '\26' .. length .. id
end
-- Adds a task that is counted. If a task of the same id exists and cannot do this work too, the new task gets another
-- id and stays beside it. `busy(state, n, same)` says whether that is so; `n` is the number of tasks seen so far,
-- `same` whether the tallies are the same. Answers whether the task must be counted. `delay` nil: at once.
local function enqueue_beside(queue, id, message, tally, busy, delay)
    local slot, n = id, 1
    while true do
        local row = redis.call('HMGET', 'asynq:{' .. queue .. '}:t:' .. slot, 'state', 'tally')
        if not busy(row[1], n, row[2] and tally_same(row[2], tally)) then
            local named = n == 1 and message or message_as(message, slot)
            local _, counts = enqueue(queue, slot, named, delay or '0', '', '0', tally, row)
            return counts
        end
        n = n + 1
        slot = id .. '|' .. n
    end
end
-- For listings and copies: an active task of an earlier round has seen the source as it was before this round.
local function runs_for_another(state, _, same)
    return state == 'active' and not same
end
-- For changes: a pending task will see the change when it runs, so no other task is needed. An active task may have
-- looked already, and a failed task may wait for long: then the change gets a task of its own, up to a few.
local function cannot_take_on(state, n)
    return state == 'active' or (state == 'retry' or state == 'scheduled') and n < 4
end
local function flush()
    local woken = false
    for queue, line in pairs(lines) do
        redis.call('SADD', 'asynq:queues', queue)
        for i = 1, #line, 500 do
            local last = math.min(i + 499, #line)
            local length = redis.call('LPUSH', 'asynq:{' .. queue .. '}:pending', unpack(line, i, last))
            woken = woken or length == last - i + 1
        end
    end
    lines = {}
    if woken then
        redis.call('PUBLISH', 'weir:queue', '')
    end
end
