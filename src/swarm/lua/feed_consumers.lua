-- ARGV: prefix. Answers the number of the last record, then names and what they have acknowledged, in turns.
-- include part_feed
local _, last = range()
local out = {text(last)}
for i, value in ipairs(call('HGETALL', consumers)) do
    out[i + 1] = value
end
return out
