-- Forgets a bucket that is not sharded any more, unless it was sharded again since. ARGV: '<storage>:<bucket>', number
-- of its last map. Answers 1 if it was forgotten.
local there = string.match(redis.call('HGET', 'w:shards', ARGV[1]) or '', ':(%d+)$')
if there and tonumber(there) > tonumber(ARGV[2]) then
    return 0
end
redis.call('HDEL', 'w:shards', ARGV[1])
redis.call('DEL', 'w:shard:' .. ARGV[1], 'w:shard:held:' .. ARGV[1])
redis.call('PUBLISH', 'weir:shards', ARGV[1] .. ':' .. ARGV[2])
return 1
