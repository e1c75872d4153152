-- Tracks accounts that the rebuild has found. ARGV: triples of score, member and entry; accounts of one slot and host
-- follow each other. A score that `tracked` already has stays, because that of the rebuild is less exact. Returns how
-- many of the accounts were not tracked before.
-- include part_schedule
if not mapped() then
    return 'NOMAP'
end
local tracked, groups, place, rows = {}, {}, nil, nil
local n = 0
for i = 1, #ARGV, 3 do
    local score, entry = ARGV[i], ARGV[i + 2]
    if not place or string.sub(entry, 1, #place) ~= place then
        place, rows = string.match(entry, '^%d+ [^/]+/'), {}
        groups[#groups + 1] = {set_of(entry), rows}
    end
    tracked[n + 1], tracked[n + 2] = score, ARGV[i + 1]
    rows[#rows + 1] = score
    rows[#rows + 1] = entry
    n = n + 2
end
local added = call('ZADD', TRACKED, 'NX', unpack(tracked))
if added == #ARGV / 3 then
    -- The store was emptied, so no index has the accounts, and all can be added in one call.
    for _, group in ipairs(groups) do
        call('ZADD', group[1], unpack(group[2]))
        call('SADD', SETS, group[1])
    end
else
    for i = 1, #ARGV, 3 do
        local member, entry = ARGV[i + 1], ARGV[i + 2]
        if tonumber(call('ZSCORE', TRACKED, member)) < 0 then
            call('ZADD', TRACKED, ARGV[i], member)
        end
        if not call('ZSCORE', LEASED, entry) and not call('ZSCORE', HOLD, entry) then
            ready(entry, member)
        end
    end
end
if added > 0 then
    news()
end
return added
