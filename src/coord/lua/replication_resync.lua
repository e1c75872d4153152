-- Begins the initial copy anew; changes that are still queued belong to it, and count no more.
-- ARGV: database of the queue, of policies; key of the status; queue, id, message of the first task; user, bucket; '1': a switch
-- that is not in progress is no hindrance.
-- Answers {'ok'}, {'none'}, {'archived'} or {'switch'}: its destination may be ahead of its source.
-- include part_enqueue
-- include part_policy
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
local round = rfc3339()
redis.call('HSET', status, 'resynced_at', round, 'obj_listed', '0', 'obj_done', '0', 'obj_failed', '0', 'bytes_listed', '0',
    'bytes_done', '0', 'listing_started', '0', 'listings', '1', 'events', '0', 'events_done', '0')
redis.call('HDEL', status, 'init_done_at')
redis.call('SELECT', queue)
enqueue_beside(ARGV[4], ARGV[5], ARGV[6], config .. ' ' .. queue .. ' l 0 ' .. round .. ' ' .. status, runs_for_another)
flush()
return {'ok'}
