-- Puts an account in front of all others. ARGV: entry. Returns 1, or 0 if the account is not tracked. If the account is
-- being synced, it is put in front when its claim ends.
-- include part_schedule
if not mapped() then
    return 'NOMAP'
end
local _, member = split(ARGV[1])
if not call('ZSCORE', TRACKED, member) then
    return 0
end
local first, begun = front_time(ARGV[1])
if not first or begun then
    call('ZADD', FIRST, text(now), ARGV[1])
end
if not call('ZSCORE', LEASED, ARGV[1]) then
    call('ZREM', HOLD, ARGV[1])
    ready(ARGV[1], member)
    news()
end
return 1
