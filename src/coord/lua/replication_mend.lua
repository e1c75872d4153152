-- Mends a replication whose counters and tasks do not agree, because another tool than weir has deleted or moved tasks
-- (docs/replication.md, P8).
-- ARGV: numbers of queueDB and configDB; key of the status; user, bucket, escaped; how many copies are counted as
-- failed but have not failed (0: tasks are missing, and the copy begins again); queue, id and message of the first
-- task; names and values of the status as it was before the tasks were counted.
-- Answers {'ok'}, or a refusal: {'none'} if the status has changed, {'archived'}, {'switch'}.
-- include part_policy
-- include part_resync
local queue, config, status, surplus = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[6])
-- Each of weir's steps that adds or ends a task changes the status. So if the status is the same, all tasks were
-- counted.
if redis.call('HLEN', status) ~= (#ARGV - 9) / 2 then
    return {'none'}
end
for i = 10, #ARGV, 2 do
    if redis.call('HGET', status, ARGV[i]) ~= ARGV[i + 1] then
        return {'none'}
    end
end
if surplus > 0 then
    redis.call('HINCRBY', status, 'obj_failed', -surplus)
    return {'ok'}
end
if redis.call('HGET', status, 'archived') == '1' then
    return {'archived'}
end
if switch_open(ARGV[4], ARGV[5]) and not switch_waits(ARGV[4], ARGV[5]) then
    return {'switch'}
end
resync_begin(status, queue, config, {ARGV[7], ARGV[8], ARGV[9]})
return {'ok'}
