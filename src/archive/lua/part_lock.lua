-- Locks of accounts, and fences. A lock that weir has set has the value `<fence>-<random word>`.
-- include part_schedule
-- The lock of a leased account is checked again after this time at the latest, in ms.
local LOOK = 60000
-- Returns nil if the lock is free; otherwise the time in ms after which to check it again. If a lock that weir has set
-- would live much longer than `ttl`, it was set before the store's clock went back and was not renewed since then, so
-- it counts as free. A lock that somebody has set by hand is respected, whatever its value and its time are.
local function locked(key, ttl)
    local left = call('PTTL', key)
    if left == -2 then
        return nil
    end
    if left > 2 * ttl + LOOK then
        local value = redis.pcall('GET', key)
        if type(value) == 'string' and string.find(value, '^%d+%-%x+$') then
            return nil
        end
    end
    if left < 0 or left > LOOK then
        return LOOK
    end
    return math.max(left, 1)
end
-- Takes the lock. Returns nil if the caller has the lock now; otherwise the time in ms after which to check the lock
-- again.
local function take(key, token, ttl)
    if call('SET', key, token, 'NX', 'PX', text(ttl)) then
        return nil
    end
    local left = locked(key, ttl)
    if not left then
        call('SET', key, token, 'PX', text(ttl))
    end
    return left
end
-- Returns the next fence. It is greater than all fences before, even if the store has lost them.
local function next_fence(last)
    return math.max(last + 1, time[1] * 1000000 + time[2])
end
-- Fences are times in microseconds, and the numbers of Lua are exact up to 2^53. A fence that was read from an object
-- can raise the last fence at most to 2^52 (the year 2112), and later claims count on from there. So a last fence past
-- 2^53 was not made by claims.
local RAISE_MAX, EXACT_MAX = 2 ^ 52, 2 ^ 53
local function last_fence()
    local last = tonumber(call('GET', FENCE) or '0') or 0
    return last >= 0 and last < EXACT_MAX and math.floor(last) or 0
end
