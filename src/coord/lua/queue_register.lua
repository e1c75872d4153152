-- Enters a server and its workers in Asynq's lists. ARGV: server id (host:pid:uuid), life of the entries (s), message
-- of the server, then pairs of task id and message of the worker. Without a message of the server, its entries are
-- removed.
local server = 'asynq:servers:{' .. ARGV[1] .. '}'
local workers = 'asynq:workers:{' .. ARGV[1] .. '}'
redis.call('DEL', workers)
if not ARGV[3] then
    redis.call('DEL', server)
    redis.call('ZREM', 'asynq:servers', server)
    redis.call('ZREM', 'asynq:workers', workers)
    return 1
end
local now = redis.call('TIME')[1]
local expires = now + ARGV[2]
redis.call('SETEX', server, ARGV[2], ARGV[3])
redis.call('ZADD', 'asynq:servers', expires, server)
redis.call('ZADD', 'asynq:workers', expires, workers)
for i = 4, #ARGV, 2 do
    redis.call('HSET', workers, ARGV[i], ARGV[i + 1])
end
if #ARGV > 3 then
    redis.call('EXPIRE', workers, ARGV[2])
end
redis.call('ZREMRANGEBYSCORE', 'asynq:servers', '-inf', now)
redis.call('ZREMRANGEBYSCORE', 'asynq:workers', '-inf', now)
return 1
