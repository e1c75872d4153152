-- Lists the consumers. ARGV: prefix. Answers the number of the last record; then, in turns, the name of a consumer
-- and the number of the last record that it has acknowledged.
-- include part_feed
local _, last = range()
local out = {text(last)}
for i, value in ipairs(call('HGETALL', consumers)) do
    out[i + 1] = value
end
return out
