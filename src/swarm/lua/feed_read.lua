-- What a consumer has not acknowledged. ARGV: prefix, name, at most. Answers the number of the first record, then the records; nil: no such
-- consumer.
-- include part_feed
local acknowledged = call('HGET', consumers, ARGV[2])
if not acknowledged then
    return false
end
local from = tonumber(acknowledged) - range() + 1
return {text(acknowledged + 1), call('LRANGE', list, from, from + ARGV[3] - 1)}
