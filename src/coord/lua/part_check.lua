-- Functions for checks (docs/diff.md): how long they are kept, and their cursor. appDB must be selected.
-- include part_enqueue
local check_life = 30 * 86400
-- Keeps the check for another `check_life` seconds.
local function check_touch(id)
    local hash, locations, _, list, open = check_keys(id)
    for _, key in ipairs({hash, locations, list, open}) do
        redis.call('EXPIRE', key, check_life)
    end
end
-- Moves the cursor from `after` to `last` ('': the end). Answers false when the cursor is not at `after`.
local function check_move(id, after, last)
    local _, _, cursor = check_keys(id)
    if (redis.call('GET', cursor) or '') ~= after then
        return false
    end
    if last ~= '' then
        redis.call('SETEX', cursor, check_life, last)
    else
        redis.call('DEL', cursor)
    end
    return true
end
-- Lets another task continue the walk from the cursor (docs/diff.md, D9). From then on, a task of an earlier piece
-- changes nothing. `next`: queue, id and message of the task that continues.
local function check_hand_over(app, queue, round, id, piece, next)
    piece = string.format('%d', piece + 1)
    redis.call('HSET', check_keys(id), 'piece', piece)
    redis.call('SELECT', queue)
    enqueue(next[1], next[2], next[3], '0', '', '0', check_walk_tally(app, queue, round, id, piece))
    flush()
    redis.call('SELECT', app)
end
