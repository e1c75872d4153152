-- A process tells which epoch it holds. ARGV: its id, epoch, life (s). Those that died long ago are forgotten.
local now = tonumber(redis.call('TIME')[1])
redis.call('HSET', 'w:gateways', ARGV[1], ARGV[2] .. ':' .. now)
local rows = redis.call('HGETALL', 'w:gateways')
for i = 1, #rows, 2 do
    local told = tonumber(string.match(rows[i + 1], ':(%d+)$') or '0')
    if told + 10 * ARGV[3] < now then
        redis.call('HDEL', 'w:gateways', rows[i])
    end
end
return 1
