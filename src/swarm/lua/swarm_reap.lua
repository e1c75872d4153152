-- Removes peers that have not announced for longer than the timeout. ARGV: prefix, timeout in seconds, most peers to
-- remove. Answers how many peers were removed.
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
    -- Skips a peer whose key has another type (docs/swarm.md, G7).
    if not pcall(reap, member) then
        call('ZREM', P .. 'expiry', member)
    end
end
return #members
