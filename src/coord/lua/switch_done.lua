-- Ends a switch, whether it reached the new side or went back.
-- ARGV: numbers of appDB, queueDB and configDB; user, bucket, escaped; time at which the switch was made; queue, id and
-- message of the task that cleans up after the replication that is removed.
-- Answers {'ok'} or a refusal.
-- include part_switch
-- include part_enqueue
local app, queue, config = ARGV[1], ARGV[2], ARGV[3]
local function remove(s, from, to)
    redis.call('ZREM', set_of(s), from .. ':' .. to)
    redis.call('DEL', status_of(s, from, to))
    vectors_unused(s.bucket)
    redis.call('SELECT', queue)
    enqueue_beside(ARGV[7], ARGV[8], ARGV[9], nil, function(state) return state == 'active' end)
    flush()
    redis.call('SELECT', config)
end
-- Ends a switch without downtime: from now on changes of the new side are copied back, or the replication in this
-- direction is not needed any more and is removed.
local function done_live(s)
    local reverse = status_of(s, s.to, s.from)
    if s.fields.continueReplication == '1' then
        redis.call('HSET', reverse, 'paused', '0')
    else
        remove(s, s.to, s.from)
    end
end
local function done_blocked(s)
    archive(s, s.from, s.to)
    if s.fields.continueReplication == '1' then
        status_new(status_of(s, s.to, s.from), '1', '0')
        redis.call('ZADD', set_of(s), s.fields.replPriority, s.to .. ':' .. s.from)
    end
    switch_route(s, s.to)
    switch_block(s, 'SREM')
end
local s = switch_mine()
if not s then
    return {'gone'}
end
if s.status ~= (s.live and 'in_progress' or 'check_in_progress') or s.fields.blocked then
    return {'state', s.status}
end
local left = lag(s, s.from, s.to)
if left > 0 then
    return {'lag', tostring(left)}
end
if s.live then
    redis.call('SELECT', app)
    redis.call('DEL', 's:up:' .. s.user .. ':' .. s.bucket)
    redis.call('SELECT', config)
end
if s.fields.abortedAt then
    remove(s, s.from, s.to)
    switch_drop(s, 'the route leads to ' .. raw(s.to) .. ' again, which has everything')
    return {'ok'}
end
if s.live then
    done_live(s)
else
    done_blocked(s)
end
redis.call('HSET', s.key, 'doneAt', rfc3339())
switch_move(s, 'done', 'the route leads to ' .. raw(s.to))
return {'ok'}
