-- Makes a task pending at once, or deletes it. ARGV: queue, id, 'run' or 'delete'. Answers 1; 0: there is no such task;
-- -1: the task is active.
-- include part_tally
-- include part_remove
local prefix = 'asynq:{' .. ARGV[1] .. '}:'
local key = prefix .. 't:' .. ARGV[2]
local row = redis.call('HMGET', key, 'state', 'tally')
local state, tally = row[1], row[2]
if not state then
    return 0
end
if state == 'active' then
    return -1
end
if ARGV[3] == 'delete' then
    remove_task(prefix, ARGV[2], state)
    if tally then
        tally_count(tally, state == 'archived' and 'forgotten' or 'gone')
    end
elseif state ~= 'pending' then
    redis.call('ZREM', prefix .. state, ARGV[2])
    redis.call('HSET', key, 'state', 'pending', 'pending_since', time[1] .. string.format('%06d000', time[2]))
    redis.call('LPUSH', prefix .. 'pending', ARGV[2])
    if tally and state == 'archived' then
        tally_count(tally, 'again')
    end
    redis.call('PUBLISH', 'weir:queue', '')
end
return 1
