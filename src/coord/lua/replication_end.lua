-- Removes the replication of a bucket that was deleted, if the user's policy would make the same replication again
-- (docs/replication.md, P7).
-- ARGV: numbers of appDB, queueDB and configDB; user, bucket, from, to, escaped; key of the bucket's vector, field of
-- the source in it, number of that field before the source was found to have no bucket; queue, id and message of the
-- task that cleans up, and of the task that looks whether the bucket was made again; from, not escaped; the storage to
-- which the route leads without a routing policy.
-- Answers {'ok'}; {'kept'}: the replication stays.
-- include part_policy
-- include part_enqueue
local app, queue, config, user, bucket = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local member = ARGV[6] .. ':' .. ARGV[7]
local set = 'p:repl:' .. user .. ':' .. bucket
local status = 'p:repl_st:' .. user .. ':' .. bucket .. ':' .. member
local priority = redis.call('ZSCORE', set, member)
if not priority or priority ~= redis.call('ZSCORE', 'p:repl:' .. user, member) or switch_open(user, bucket)
    or (redis.call('HGET', status, 'agent_url') or '') ~= '' then
    return {'kept'}
end
-- If a change was recorded since then, the bucket was made again.
redis.call('SELECT', app)
local number = redis.call('HGET', ARGV[8], ARGV[9]) or '0'
redis.call('SELECT', config)
if number ~= ARGV[10] then
    return {'kept'}
end
redis.call('ZREM', set, member)
redis.call('DEL', status)
vectors_unused(bucket)
-- The copy was deleted, so its place is not marked as a copy any more. The routing policy is removed too, if the route
-- leads to the same storage without it.
if redis.call('HGET', 'w:copies', ARGV[7] .. ':' .. bucket) == user then
    redis.call('HDEL', 'w:copies', ARGV[7] .. ':' .. bucket)
end
local route = 'p:route:' .. user .. ':' .. bucket
if redis.call('EXISTS', set) == 0 and redis.call('GET', route) == ARGV[17]
    and (redis.call('GET', 'p:route:' .. user) or ARGV[18]) == ARGV[17] then
    redis.call('DEL', route)
    redis.call('SREM', 'w:pins', user .. ':' .. bucket)
end
redis.call('PUBLISH', 'weir:routes', 'changed')
config_changed()
policy_changed(user .. ':' .. bucket .. ':' .. member, ARGV[6] .. ':' .. bucket)
redis.call('SELECT', queue)
for i = 11, 14, 3 do
    enqueue_beside(ARGV[i], ARGV[i + 1], ARGV[i + 2], nil, function(state) return state == 'active' end)
end
flush()
redis.call('SELECT', config)
return {'ok'}
