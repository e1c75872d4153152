-- Every gateway knows that a switch which was blocked goes on without downtime. ARGV: databases of vectors, of the queue, of policies;
-- user, bucket, escaped; when it was made. Answers {'ok'} or why not.
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
