-- Claims one account, whatever its score is. ARGV: entry, the lock's time to live in ms, a random word. Returns nil if
-- somebody else has the lock. Otherwise returns the time in ms, the fence, the token, the score (empty: the account is
-- not tracked), and until when the account was held (0: it was not).
-- include part_lock
if not mapped() then
    return 'NOMAP'
end
local entry, ttl = ARGV[1], tonumber(ARGV[2])
local _, member = split(entry)
local fence = next_fence(last_fence())
local token = text(fence) .. '-' .. ARGV[3]
if take(lock_of(member), token, ttl) then
    return false
end
local tracked, held = call('ZSCORE', TRACKED, member), call('ZSCORE', HOLD, entry)
call('SET', FENCE, text(fence))
call('ZREM', HOLD, entry)
call('ZREM', set_of(entry), entry)
if tracked then
    call('ZADD', LEASED, text(now + ttl), entry)
end
return {text(now), text(fence), token, tracked or '', held or '0'}
