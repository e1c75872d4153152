-- Adds a consumer, which will read the records after the newest one. ARGV: prefix, the consumer's name.
-- Answers 1, or 0 when a consumer has the name already.
-- include part_feed
local _, last = range()
if call('HSETNX', consumers, ARGV[2], text(last)) == 0 then
    return 0
end
if call('EXISTS', list) == 0 then
    call('RPUSH', list, text(last))
end
return 1
