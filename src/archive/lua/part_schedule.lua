-- The keys of the schedule, and functions for all its scripts (docs/archive.md, "The schedule"). An *entry* is the name
-- of an account in the indexes: `<slot> <member>`.
local call = redis.call
local TRACKED, SETS, READY = 'tracked', 'w:archive:sets', 'w:archive:ready:'
local LEASED, HOLD, FIRST = 'w:archive:leased', 'w:archive:hold', 'w:archive:first'
local MAP, FAILS, BUILT, FENCE = 'w:archive:map', 'w:archive:fails', 'w:archive:built', 'w:archive:fence'
-- The score of an entry in a ready set is the account's score in `tracked`. If the account was put in front, the score
-- is FRONT plus the ms of that moment, which is below every time and below -1.
local FRONT, FRONT_MAX = -1e15, -1e14
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function text(number)
    return string.format('%.0f', number)
end
-- Whether there is a table of slots. Without a table no account can be put into a ready set; the caller of the script
-- then writes the table to the store and calls the script again.
local function mapped()
    return call('EXISTS', MAP) == 1
end
local function split(entry)
    return string.match(entry, '^(%d+) (.+)$')
end
-- Returns the ready set of an entry. A ':' in the host, before a port, is escaped.
local function set_of(entry)
    local slot, host = string.match(entry, '^(%d+) ([^/]+)/')
    return READY .. string.gsub(host, ':', '%%3A') .. ':' .. (call('HGET', MAP, slot) or '')
end
local function lock_of(member)
    return 'lock:' .. (string.match(member, '^github%.com/(.+)$') or member)
end
-- Returns when somebody has put the account in front, in ms; nil: nobody has. FIRST has this time. It is negative from
-- the claim of the account on until the claim ends.
local function front_time(entry)
    local first = tonumber(call('ZSCORE', FIRST, entry) or nil)
    return first and math.abs(first), first and first < 0
end
-- Puts an entry where it can be claimed. Returns false when the account is not tracked. If the claim of an account that
-- was in front has not ended, its sync has not been made: the account is in front again.
local function ready(entry, member)
    local score, first, begun = call('ZSCORE', TRACKED, member), front_time(entry)
    if not score then
        return false
    end
    if begun then
        call('ZADD', FIRST, text(first), entry)
    end
    if score == '-inf' or (tonumber(score) or 0) < -1 then -- set by hand; it would stay in front of all others
        score = '-1'
        call('ZADD', TRACKED, 'XX', score, member)
    end
    local set = set_of(entry)
    call('ZADD', set, first and text(FRONT + first) or score, entry)
    call('SADD', SETS, set)
    return true
end
-- Removes the account from all indexes.
local function drop(entry, member)
    call('ZREM', set_of(entry), entry)
    call('ZREM', LEASED, entry)
    call('ZREM', HOLD, entry)
    call('ZREM', FIRST, entry)
    call('HDEL', FAILS, member)
end
local function news()
    call('PUBLISH', 'w:archive:news', '')
end
