-- Aborts a switch. A switch without downtime that has begun goes back to the old side; any other switch is removed.
-- ARGV: numbers of appDB, queueDB and configDB; user, bucket, escaped. Answers {'ok'} or a refusal.
-- include part_switch
local s = switch_read(ARGV[4], ARGV[5])
if not s.status then
    return {'gone'}
end
if s.fields.abortedAt then
    return {'aborted'}
end
local going = s.status == 'in_progress' or s.status == 'check_in_progress'
if not going or not s.live then
    if going then
        switch_block(s, 'SREM')
    end
    switch_drop(s, going and 'given up' or 'forgotten')
    return {'ok'}
end
if s.fields.blocked then
    switch_block(s, 'SREM')
    redis.call('HDEL', s.key, 'blocked')
end
archive(s, s.to, s.from)
redis.call('HSET', status_of(s, s.to, s.from), 'paused', '0')
redis.call('HSET', status_of(s, s.from, s.to), 'archived', '0')
redis.call('HDEL', status_of(s, s.from, s.to), 'archived_at')
redis.call('ZADD', set_of(s), s.fields.replPriority, s.from .. ':' .. s.to)
redis.call('HSET', s.key, 'replicationID', s.user .. ':' .. s.bucket .. ':' .. s.to .. ':' .. s.from, 'abortedAt', rfc3339())
switch_route(s, s.from)
switch_move(s, 'in_progress', 'given up: the route leads to ' .. raw(s.from))
return {'ok'}
