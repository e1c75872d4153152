-- Changes how long a switch waits for uploads that are open on the storage that is left, also while it waits. ARGV: databases of
-- vectors, of the queue, of policies; user, bucket, escaped; how long (ns), text for the history. Answers {'ok'} or why not.
-- include part_switch
local ttl = ARGV[6]
local s = switch_read(ARGV[4], ARGV[5])
if not s.status then
    return {'gone'}
end
if s.status == 'done' then
    return {'state', s.status}
end
-- That of one without downtime is never 0, which says that it is one with.
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
