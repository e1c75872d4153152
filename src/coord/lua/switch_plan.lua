-- Plans a switch, or changes the options of a switch that is not in progress.
-- ARGV: numbers of appDB, queueDB and configDB; user, bucket, from, to, escaped; the storage to which the route leads
-- without a routing policy; '1': without downtime; '1': the copy must be complete already; queue, id and message of the
-- switch's task; names and values of its options. Answers {'ok'} or a refusal.
-- include part_switch
-- include part_enqueue
-- include part_remove
local queue, config = ARGV[2], ARGV[3]
local s = switch_read(ARGV[4], ARGV[5])
local id = ARGV[4] .. ':' .. ARGV[5] .. ':' .. ARGV[6] .. ':' .. ARGV[7]
local old = s.fields
if s.status == 'in_progress' or s.status == 'check_in_progress' then
    return {'going'}
end
local waits = s.status and s.status ~= 'done'
if not s.status and switch_open(s.user, s.bucket) or waits and (s.id ~= id or s.live ~= (ARGV[9] == '1')) then
    return {'switch'}
end
s.from, s.to, s.id = ARGV[6], ARGV[7], id
local why = switch_refused(s, ARGV[8], ARGV[10] == '1')
if why then
    return why
end
redis.call('DEL', s.key)
redis.call('HSET', s.key, 'replicationID', id, 'createdAt', rfc3339(), 'replPriority', redis.call('ZSCORE', set_of(s), s.from .. ':' .. s.to),
    unpack(ARGV, 14))
switch_move(s, 'not_started', waits and 'planned again' or 'planned')
redis.call('SELECT', queue)
-- An earlier task that may wait for long is removed. One that runs may have found nothing to do already, so the new
-- task stays beside it.
local state = redis.call('HGET', 'asynq:{' .. ARGV[11] .. '}:t:' .. ARGV[12], 'state')
if state == 'retry' or state == 'scheduled' then
    remove_task('asynq:{' .. ARGV[11] .. '}:', ARGV[12], state)
end
enqueue_beside(ARGV[11], ARGV[12], ARGV[13], nil, function(state) return state == 'active' end)
flush()
redis.call('SELECT', config)
return {'ok'}
