-- Removes completed tasks that have been kept long enough, and archived tasks that are old or too many.
-- ARGV: most tasks of a queue to remove for each of these reasons, life of archived tasks (s), most archived tasks to
-- keep, queues. Answers how many tasks were removed.
-- include part_tally
local now = time[1]
local limit, keep = tonumber(ARGV[1]), tonumber(ARGV[3])
local removed = 0
local function drop(prefix, set, ids)
    for i = 1, #ids do
        local key = prefix .. 't:' .. ids[i]
        local tally = redis.call('HGET', key, 'tally')
        redis.call('ZREM', prefix .. set, ids[i])
        redis.call('DEL', key)
        if tally then
            tally_count(tally, 'forgotten')
        end
    end
    removed = removed + #ids
end
for q = 4, #ARGV do
    local prefix = 'asynq:{' .. ARGV[q] .. '}:'
    local completed, archived = prefix .. 'completed', prefix .. 'archived'
    drop(prefix, 'completed', redis.call('ZRANGEBYSCORE', completed, '-inf', now, 'LIMIT', 0, limit))
    drop(prefix, 'archived', redis.call('ZRANGEBYSCORE', archived, '-inf', now - ARGV[2], 'LIMIT', 0, limit))
    local excess = redis.call('ZCARD', archived) - keep
    if excess > 0 then
        drop(prefix, 'archived', redis.call('ZRANGE', archived, 0, math.min(excess, limit) - 1))
    end
end
return removed
