-- Checks (docs/diff.md). check_held(): whether the round is the present one, in that state. check_begin(): fields of one that begins
-- to compare. In the database of vectors, where they end too.
-- include part_enqueue
local check_life = 30 * 86400
local function check_keys(id)
    return 'w:ccv:c:' .. id, 'w:ccv:stor:' .. id, 'w:ccv:l:' .. id, 'w:ccv:d:' .. id, 'w:ccv:f:' .. id
end
local function check_held(id, state, round)
    local row = redis.call('HMGET', check_keys(id), 'state', 'round')
    return row[1] == state and row[2] == round
end
local function check_touch(id)
    local hash, locations, _, list, open = check_keys(id)
    for _, key in ipairs({hash, locations, list, open}) do
        redis.call('EXPIRE', key, check_life)
    end
end
local function check_begin(id, round)
    local hash, _, cursor, list, open = check_keys(id)
    redis.call('HSET', hash, 'state', 'checking', 'round', round, 'started_at', rfc3339(), 'keys', '0', 'differences', '0', 'bytes', '0',
        'kept', '0')
    redis.call('HDEL', hash, 'error', 'done_at')
    redis.call('DEL', cursor, list, open)
end
-- Moves the cursor from `after` to `last` ('': the end); false when it is not there.
local function check_move(id, after, last)
    local _, _, cursor = check_keys(id)
    if (redis.call('GET', cursor) or '') ~= after then
        return false
    end
    if last ~= '' then
        redis.call('SETEX', cursor, 28800, last)
    else
        redis.call('DEL', cursor)
    end
    return true
end
-- A fix whose walk is over, and nothing of it open: the check begins again.
local function check_fix_ended(id, queue, app, round, task_queue, task_id, message)
    local hash, _, _, _, open = check_keys(id)
    if redis.call('HGET', hash, 'fix_listed') ~= '1' or redis.call('EXISTS', open) == 1 then
        return
    end
    redis.call('HSET', hash, 'fixed_at', rfc3339())
    check_begin(id, round)
    redis.call('SELECT', queue)
    enqueue(task_queue, task_id, message, '0', '', '0')
    flush()
    redis.call('SELECT', app)
end
