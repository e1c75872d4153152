-- Begins to track accounts. ARGV: entries. Returns how many of the accounts were not tracked before.
-- include part_schedule
if not mapped() then
    return 'NOMAP'
end
local added = 0
for i = 1, #ARGV do
    local _, member = split(ARGV[i])
    if call('ZADD', TRACKED, 'NX', '-1', member) == 1 then
        added = added + 1
        drop(ARGV[i], member)
        ready(ARGV[i], member)
    end
end
if added > 0 then
    news()
end
return added
