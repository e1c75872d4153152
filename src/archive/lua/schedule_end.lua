-- Ends a claim. ARGV: entry; the lock's token; when the account was claimed (ms), 0 if it was not tracked; then `full` and the
-- score, `failed` and for how many ms to hold the account (0: by the number of failures), or `back` and until when the
-- account is held (0: not). Answers 1, or 0 when the lock was lost.
-- include part_lock
if not mapped() then
    return 'NOMAP'
end
local entry, how, value = ARGV[1], ARGV[4], tonumber(ARGV[5])
local slot, member = split(entry)
local FAIL_MS, FAIL_MAX_MS = 60000, 86400000
if redis.pcall('GET', lock_of(member)) ~= ARGV[2] then
    -- If the store was emptied since the claim, the rebuild may have looked for the account before its record was written and
    -- after its `.new` object was removed. So the account is not left to the rebuild alone (docs/archive.md, V5).
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
