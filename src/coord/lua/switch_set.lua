-- Changes how long a switch waits for uploads that are open on the old storage, also while it waits.
-- ARGV: numbers of appDB, queueDB and configDB; user, bucket, escaped; how long (ns); text for the history. Answers
-- {'ok'} or a refusal.
-- include part_switch
local ttl = ARGV[6]
local s = switch_read(ARGV[4], ARGV[5])
if not s.status then
    return {'gone'}
end
if s.status == 'done' then
    return {'state', s.status}
end
-- The time of a switch without downtime is never 0, since 0 means a switch with downtime.
if s.live then
    ttl = ttl == '0' and '1' or ttl
    redis.call('HSET', s.key, 'multipartTTL', ttl)
end
if ttl == '0' then
    redis.call('HDEL', s.key, 'uploadsTTL')
elseif not s.live or s.fields.uploadsTTL then
    redis.call('HSET', s.key, 'uploadsTTL', ttl)
end
switch_note(s, s.status, ARGV[7])
return {'ok'}
