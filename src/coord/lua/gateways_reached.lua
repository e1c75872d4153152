-- Whether all processes that were heard of lately hold an epoch. ARGV: epoch, life (s).
local now = tonumber(redis.call('TIME')[1])
local rows = redis.call('HGETALL', 'w:gateways')
for i = 2, #rows, 2 do
    local epoch, told = string.match(rows[i], '^(-?%d+):(%d+)$')
    if told and told + ARGV[2] >= now and tonumber(epoch) < tonumber(ARGV[1]) then
        return 0
    end
end
return 1
