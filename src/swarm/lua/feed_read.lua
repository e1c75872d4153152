-- Reads the records that a consumer has not acknowledged. ARGV: prefix, the consumer's name, how many of these records
-- to skip, how many to answer at most. Answers the number of the first record, then the list of records; nil: there is
-- no such consumer.
-- include part_feed
local acknowledged = call('HGET', consumers, ARGV[2])
if not acknowledged then
    return false
end
local from = tonumber(acknowledged) - range() + 1 + ARGV[3]
return {text(acknowledged + 1 + ARGV[3]), call('LRANGE', list, text(from), text(from + ARGV[4] - 1))}
