-- Removes a consumer. ARGV: prefix, the consumer's name. Answers 1, or 0 when there is no such consumer.
-- include part_feed
if call('HDEL', consumers, ARGV[2]) == 0 then
    return 0
end
trim()
return 1
