-- Removes a replication: its member, status and block (docs/replication.md, P5). No other replication has the same
-- block, because a destination is used once (replication_add.lua).
-- ARGV: user, bucket, from, to, other bucket, escaped; other bucket, not escaped. Answers {'ok'}, or a refusal.
-- include part_policy
local user, bucket = ARGV[1], ARGV[2]
local set = 'p:repl:' .. user .. (bucket ~= '' and ':' .. bucket or '')
local member = ARGV[3] .. ':' .. ARGV[4] .. (ARGV[5] ~= '' and ':' .. ARGV[5] or '')
local status = 'p:repl_st:' .. user .. ':' .. bucket .. ':' .. member
local live = redis.call('ZSCORE', set, member)
if not live and redis.call('EXISTS', status) == 0 then
    return {'none'}
end
if bucket ~= '' and switch_open(user, bucket) then
    return {'switch'}
end
redis.call('ZREM', set, member)
redis.call('DEL', status)
if bucket ~= '' then
    vectors_unused(bucket)
end
if ARGV[5] ~= '' then
    policy_block('SREM', ARGV[4], ARGV[6])
end
config_changed()
policy_changed(user .. ':' .. bucket .. ':' .. member, bucket ~= '' and ARGV[3] .. ':' .. bucket or nil)
return {'ok'}
