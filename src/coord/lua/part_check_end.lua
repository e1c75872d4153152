-- Functions for the end of a task of a check (docs/diff.md, D8). appDB must be selected, and is selected afterwards.
-- check_held() answers whether the check is in this state and this round. check_walks() compares the piece of the walk
-- too (D9). check_begin() sets the fields of a check that begins to compare.
-- include part_time
local function check_keys(id)
    return 'w:ccv:c:' .. id, 'w:ccv:stor:' .. id, 'w:ccv:l:' .. id, 'w:ccv:d:' .. id, 'w:ccv:f:' .. id
end
local function check_held(id, state, round)
    local row = redis.call('HMGET', check_keys(id), 'state', 'round')
    return row[1] == state and row[2] == round
end
local function check_walks(id, state, round, piece)
    return check_held(id, state, round) and (redis.call('HGET', check_keys(id), 'piece') or '0') == piece
end
local function check_begin(id, round)
    local hash, _, cursor, list, open = check_keys(id)
    redis.call('HSET', hash, 'state', 'checking', 'round', round, 'started_at', rfc3339(), 'keys', '0', 'differences', '0', 'bytes', '0',
        'kept', '0')
    redis.call('HDEL', hash, 'error', 'done_at', 'next', 'piece', 'total')
    redis.call('DEL', cursor, list, open)
end
-- These answer the tally (part_tally) of a task that walks, and of a task that repairs.
local function check_walk_tally(app, queue, round, id, piece)
    return app .. ' ' .. queue .. ' w 0 ' .. round .. ' ' .. id .. ' ' .. piece
end
local function check_object_tally(app, queue, round, id, member)
    return app .. ' ' .. queue .. ' o 0 ' .. round .. ' ' .. id .. ' ' .. member
end
-- When the walk of a fix is over and no repair is open, begins the check again, with the task that was stored in the
-- field `next` when the fix began. No other task has the id of that task.
local function check_fix_ended(id, app, queue)
    local hash, _, _, _, open = check_keys(id)
    local row = redis.call('HMGET', hash, 'fix_listed', 'next')
    if row[1] ~= '1' or redis.call('EXISTS', open) == 1 then
        return
    end
    local round, line, task, message = string.match(row[2], '^(%S+) (%S+) (%S+) (.*)$')
    redis.call('HSET', hash, 'fixed_at', rfc3339())
    check_begin(id, round)
    redis.call('SELECT', queue)
    redis.call('HSET', 'asynq:{' .. line .. '}:t:' .. task, 'msg', message, 'state', 'pending', 'pending_since',
        time[1] .. string.format('%06d000', time[2]), 'tally', check_walk_tally(app, queue, round, id, '0'))
    redis.call('SADD', 'asynq:queues', line)
    redis.call('LPUSH', 'asynq:{' .. line .. '}:pending', task)
    redis.call('PUBLISH', 'weir:queue', '')
    redis.call('SELECT', app)
end
local function check_walk_lost(app, queue, round, rest, why)
    local id, piece = string.match(rest, '^(%S+) ?(%d*)$')
    local hash = check_keys(id)
    piece = piece == '' and '0' or piece
    if check_walks(id, 'checking', round, piece) or check_walks(id, 'fixing', round, piece) then
        redis.call('HSETNX', hash, 'error', why)
        redis.call('HSET', hash, 'state', 'failed')
    end
end
local function check_object_lost(app, queue, round, rest, why)
    local id, member = string.match(rest, '^(%S+) (.*)$')
    local hash, _, _, _, open = check_keys(id)
    if check_held(id, 'fixing', round) and redis.call('SREM', open, member) == 1 then
        redis.call('HINCRBY', hash, 'fix_failed', 1)
        redis.call('HSET', hash, 'error', string.gsub(member, '^%d+:', '') .. ': ' .. why)
        check_fix_ended(id, app, queue)
    end
end
local check_lost = {w = check_walk_lost, o = check_object_lost}
local check_why = {failed = 'its task was given up after the last try; weir task list says more', gone = 'its task was deleted'}
