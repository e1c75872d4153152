-- Stores the newest map of a sharded bucket and tells every process of it (coord/shards.h). A map that is older than
-- the stored one changes nothing. ARGV: '<storage>:<bucket>', owner, number and text of the map. Answers the number of
-- the map that is stored now.
local there = string.match(redis.call('HGET', 'w:shards', ARGV[1]) or '', ':(%d+)$')
if there and tonumber(there) > tonumber(ARGV[3]) then
    return there
end
redis.call('HSET', 'w:shards', ARGV[1], ARGV[2] .. ':' .. ARGV[3])
redis.call('SET', 'w:shard:' .. ARGV[1], ARGV[3] .. ':' .. ARGV[4])
redis.call('PUBLISH', 'weir:shards', ARGV[1] .. ':' .. ARGV[3])
return ARGV[3]
