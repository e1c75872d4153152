-- Removes completed tasks past their time, and archived ones that are old or too many.
-- ARGV: queue, life of archived ones (s), archived ones to keep, at most. Answers how many.
local prefix = 'asynq:{' .. ARGV[1] .. '}:'
local now = redis.call('TIME')[1]
local removed = 0
local function drop(set, ids)
    for i = 1, #ids do
        redis.call('ZREM', prefix .. set, ids[i])
        redis.call('DEL', prefix .. 't:' .. ids[i])
    end
    removed = removed + #ids
end
drop('completed', redis.call('ZRANGEBYSCORE', prefix .. 'completed', '-inf', now, 'LIMIT', 0, ARGV[4]))
drop('archived', redis.call('ZRANGEBYSCORE', prefix .. 'archived', '-inf', now - ARGV[2], 'LIMIT', 0, ARGV[4]))
local excess = redis.call('ZCARD', prefix .. 'archived') - tonumber(ARGV[3])
if excess > 0 then
    if excess > tonumber(ARGV[4]) then
        excess = tonumber(ARGV[4])
    end
    drop('archived', redis.call('ZRANGE', prefix .. 'archived', 0, excess - 1))
end
return removed
