-- Describes accounts. ARGV: entries. Returns for each its score (empty: the account is not tracked), its place (ready,
-- leased, held, unknown), 1 if it is in front, 1 if its lock exists, until when it is held, and its failures in a row.
-- include part_schedule
local out = {}
for i = 1, #ARGV do
    local entry = ARGV[i]
    local _, member = split(entry)
    local held, place = call('ZSCORE', HOLD, entry), 'unknown'
    local first, begun = front_time(entry)
    if call('ZSCORE', LEASED, entry) then
        place = 'leased'
    elseif held then
        place = 'held'
    elseif call('ZSCORE', set_of(entry), entry) then
        place = 'ready'
    end
    for _, value in ipairs({call('ZSCORE', TRACKED, member) or '', place, first and not begun and '1' or '0',
        tostring(call('EXISTS', lock_of(member))), held or '0', call('HGET', FAILS, member) or '0'}) do
        out[#out + 1] = value
    end
end
return out
