-- Records which map of a sharded bucket a process holds (docs/sharding.md, H5), and forgets processes that are not in
-- w:gateways any more. ARGV: '<storage>:<bucket>', process, '<number>[:<busy key>]'.
local held = 'w:shard:held:' .. ARGV[1]
redis.call('HSET', held, ARGV[2], ARGV[3])
for _, process in ipairs(redis.call('HKEYS', held)) do
    if process ~= ARGV[2] and redis.call('HEXISTS', 'w:gateways', process) == 0 then
        redis.call('HDEL', held, process)
    end
end
return 1
