-- Ends the block of a switch that goes on without downtime, once every gateway knows that it does.
-- ARGV: numbers of appDB, queueDB and configDB; user, bucket, escaped; time at which the switch was made. Answers
-- {'ok'} or a refusal.
-- include part_switch
local s = switch_mine()
if not s then
    return {'gone'}
end
if s.status ~= 'in_progress' or not s.fields.blocked then
    return {'state', s.status}
end
switch_block(s, 'SREM')
redis.call('HDEL', s.key, 'blocked')
switch_move(s, 'in_progress', 'unblocked')
return {'ok'}
