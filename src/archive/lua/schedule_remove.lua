-- Ends the tracking of an account. ARGV: entry. Returns 1, or 0 if the account is not tracked.
-- include part_schedule
if not mapped() then
    return 'NOMAP'
end
local _, member = split(ARGV[1])
drop(ARGV[1], member)
return call('ZREM', TRACKED, member)
