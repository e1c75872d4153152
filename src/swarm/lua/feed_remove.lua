-- A consumer goes. ARGV: prefix, name. Answers 1, or 0 when there is none.
-- include part_feed
if call('HDEL', consumers, ARGV[2]) == 0 then
    return 0
end
trim()
return 1
