-- Acknowledges the records up to a number for a consumer. ARGV: prefix, the consumer's name, the number.
-- Answers 1; 0: there is no such consumer; -1: there is no record with this number yet.
-- include part_feed
local acknowledged, number = call('HGET', consumers, ARGV[2]), tonumber(ARGV[3])
if not acknowledged then
    return 0
end
local _, last = range()
if number > last then
    return -1
end
if number > tonumber(acknowledged) then
    call('HSET', consumers, ARGV[2], text(number))
    trim()
end
return 1
