-- Begins the initial copy anew. ARGV: database of the queue, of policies; key of the status; queue, id, message of the first task.
-- Answers {'ok'} or {'none'}.
-- include part_enqueue
local queue, config, status = ARGV[1], ARGV[2], ARGV[3]
if redis.call('EXISTS', status) == 0 then
    return {'none'}
end
local round = rfc3339()
redis.call('HSET', status, 'resynced_at', round, 'obj_listed', '0', 'obj_done', '0', 'obj_failed', '0', 'bytes_listed', '0',
    'bytes_done', '0', 'listing_started', '0', 'listings', '1')
redis.call('HDEL', status, 'init_done_at')
redis.call('SELECT', queue)
enqueue_beside(ARGV[4], ARGV[5], ARGV[6], config .. ' ' .. queue .. ' l 0 ' .. round .. ' ' .. status, runs_for_another)
flush()
return {'ok'}
