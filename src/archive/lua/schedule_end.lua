-- Ends a claim. ARGV: entry; token (the value of the lock); when the account was claimed (ms), 0 if it was not tracked;
-- then one of
-- `full` and the new score; `failed` and the ms for which to hold the account (0: computed from the number of
-- failures); `back` and the time until which the account is held (0: it is not held).
-- Returns 1, or 0 if the lock was lost.
-- include part_lock
if not mapped() then
    return 'NOMAP'
end
local entry, how, value = ARGV[1], ARGV[4], tonumber(ARGV[5])
local slot, member = split(entry)
local FAIL_MS, FAIL_MAX_MS = 60000, 86400000
if redis.pcall('GET', lock_of(member)) ~= ARGV[2] then
    -- The store may have been emptied since the claim. Then the rebuild may have listed the slot before this sync wrote the
    -- record, and found no `.new` object either. So the end of the sync adds the account itself (docs/archive.md, V5).
    if tonumber(ARGV[3]) > 0 and tonumber(call('HGET', MAP, 'since') or '0') >= tonumber(ARGV[3]) and
        call('ZADD', TRACKED, 'NX', '-1', member) == 1 then
        ready(entry, member)
    end
    return 0
end
call('ZREM', LEASED, entry)
if how == 'full' then
    call('ZADD', TRACKED, 'XX', ARGV[5], member)
    call('HDEL', FAILS, member)
end
if not call('ZSCORE', TRACKED, member) then
    drop(entry, member)
    return 1
end
local _, begun = front_time(entry)
if begun and how ~= 'back' then
    call('ZREM', FIRST, entry) -- the sync that was asked for has been made
end
local until_ms = 0
if how == 'failed' then
    local fails = call('HINCRBY', FAILS, member, 1)
    until_ms = now + (value > 0 and value or math.min(FAIL_MS * 2 ^ (fails - 1), FAIL_MAX_MS))
elseif how == 'back' then
    until_ms = value
end
if until_ms > now and not call('ZSCORE', FIRST, entry) then
    call('ZADD', HOLD, text(until_ms), entry)
else
    ready(entry, member)
end
return 1
