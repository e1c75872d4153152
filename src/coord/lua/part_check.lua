-- Checks (docs/diff.md): how long they are kept, and their cursor. In the database of vectors.
-- include part_enqueue
local check_life = 30 * 86400
local function check_touch(id)
    local hash, locations, _, list, open = check_keys(id)
    for _, key in ipairs({hash, locations, list, open}) do
        redis.call('EXPIRE', key, check_life)
    end
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
