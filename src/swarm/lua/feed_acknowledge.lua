-- ARGV: prefix, name, number. Answers 1; 0: no such consumer; -1: there is no such record yet.
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
