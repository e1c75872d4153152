-- Begins the initial copy again. It covers the changes that are still queued, so they are not counted any more.
-- ARGV: numbers of queueDB and configDB; key of the status; queue, id and message of the first task; user, bucket; '1':
-- a switch that is not in progress is no obstacle.
-- Answers {'ok'}, {'none'}, {'archived'}, or {'switch'}: the destination may be newer than the source.
-- include part_policy
-- include part_resync
local queue, config, status = ARGV[1], ARGV[2], ARGV[3]
if redis.call('EXISTS', status) == 0 then
    return {'none'}
end
if redis.call('HGET', status, 'archived') == '1' then
    return {'archived'}
end
if switch_open(ARGV[7], ARGV[8]) and not (ARGV[9] == '1' and switch_waits(ARGV[7], ARGV[8])) then
    return {'switch'}
end
resync_begin(status, queue, config, {ARGV[4], ARGV[5], ARGV[6]})
return {'ok'}
