-- Removes peers that have not announced for long. ARGV: prefix, timeout (s), at most. Answers how many went.
-- include part_drop
-- include part_made
local cutoff = call('TIME')[1] - ARGV[2]
local members = call('ZRANGEBYSCORE', P .. 'expiry', '-inf', string.format('%.0f', cutoff), 'LIMIT', 0, ARGV[3])
local function reap(member)
    drop(member)
    local _, tid = parts(member)
    unmake(tid)
end
for _, member in ipairs(members) do
    if not pcall(reap, member) then -- G7
        call('ZREM', P .. 'expiry', member)
    end
end
return #members
