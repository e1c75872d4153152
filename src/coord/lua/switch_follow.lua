-- Continues a switch with downtime, whose check is over, as a switch without downtime, to wait for uploads that are
-- open on the old side (docs/replication.md, S11). The bucket stays blocked until every gateway knows of that
-- (switch_unblock).
-- ARGV: numbers of appDB, queueDB and configDB; user, bucket, escaped; time at which the switch was made; text for the
-- history; queue, id and message of its task. Answers {'ok'} or a refusal.
-- include part_switch
-- include part_enqueue
local app, queue, config = ARGV[1], ARGV[2], ARGV[3]
local s = switch_mine()
if not s then
    return {'gone'}
end
if s.live or s.status ~= 'check_in_progress' or not s.fields.uploadsTTL then
    return {'state', s.status}
end
local left = lag(s, s.from, s.to)
if left > 0 then
    return {'lag', tostring(left)}
end
switch_turn(s, app, config)
redis.call('HSET', s.key, 'multipartTTL', s.fields.uploadsTTL, 'blocked', '1', 'startedAt', rfc3339())
switch_move(s, 'in_progress', ARGV[7])
redis.call('SELECT', queue)
enqueue_beside(ARGV[8], ARGV[9], ARGV[10], nil, function(state) return state == 'active' end)
flush()
redis.call('SELECT', config)
return {'ok'}
