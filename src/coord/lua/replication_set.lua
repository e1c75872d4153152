-- Pauses, resumes or archives a replication. An archived replication is taken out of its bucket's set, whose source may
-- change then; its status stays.
-- ARGV: user, bucket, from, to, other bucket, escaped; 'pause', 'resume' or 'archive'. Answers {'ok'}; {'none'}: there
-- is no such replication.
-- include part_policy
local member = ARGV[3] .. ':' .. ARGV[4] .. (ARGV[5] ~= '' and ':' .. ARGV[5] or '')
local status = 'p:repl_st:' .. ARGV[1] .. ':' .. ARGV[2] .. ':' .. member
local field = ARGV[6] == 'archive' and 'archived' or 'paused'
local value = ARGV[6] == 'resume' and '0' or '1'
local old = redis.call('HGET', status, field)
if not old then
    return {'none'}
end
if old ~= value then
    redis.call('HSET', status, field, value)
    if field == 'archived' then
        redis.call('HSET', status, 'archived_at', rfc3339())
        redis.call('ZREM', 'p:repl:' .. ARGV[1] .. ':' .. ARGV[2], member)
    end
    policy_changed(ARGV[1] .. ':' .. ARGV[2] .. ':' .. member, ARGV[3] .. ':' .. ARGV[2])
end
return {'ok'}
