-- Whether all processes that were heard of lately hold an epoch. ARGV: epoch, or a member of w:epochs for the one of its last
-- change (one that is not there was more than a day ago); life (s).
local now = tonumber(redis.call('TIME')[1])
local wanted = tonumber(ARGV[1]) or tonumber(redis.call('ZSCORE', 'w:epochs', ARGV[1]) or '-1')
local rows = redis.call('HGETALL', 'w:gateways')
for i = 2, #rows, 2 do
    local epoch, told = string.match(rows[i], '^(-?%d+):(%d+)$')
    if told and told + ARGV[2] >= now and tonumber(epoch) < wanted then
        return 0
    end
end
return 1
