-- A process tells which epoch it holds. ARGV: its id, epoch, life (s). Those that died long ago are forgotten; one that
-- has told it in the future has done so before the clock went back, and its life counts from now.
local now = tonumber(redis.call('TIME')[1])
redis.call('HSET', 'w:gateways', ARGV[1], ARGV[2] .. ':' .. now)
local rows = redis.call('HGETALL', 'w:gateways')
for i = 1, #rows, 2 do
    local told = tonumber(string.match(rows[i + 1], ':(%d+)$') or '0')
    if told + 10 * ARGV[3] < now then
        redis.call('HDEL', 'w:gateways', rows[i])
    elseif told > now then
        redis.call('HSET', 'w:gateways', rows[i], string.match(rows[i + 1], '^(.*:)') .. now)
    end
end
return 1
