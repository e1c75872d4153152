-- A switch begins. ARGV: databases of vectors, of the queue, of policies; user, bucket, escaped; when it was made; storage that the
-- route leads to without a policy. Answers {'ok'} or why not.
-- include part_switch
local app, config = ARGV[1], ARGV[3]
local s = switch_mine()
if not s then
    return {'gone'}
end
if s.status ~= 'not_started' and (s.live or s.status ~= 'error' and s.status ~= 'skipped') then
    return {'state', s.status}
end
local why = switch_refused(s, ARGV[7], true)
if why then
    return why
end
redis.call('HSET', s.key, 'startedAt', rfc3339())
if not s.live then
    switch_block(s, 'SADD')
    switch_move(s, 'in_progress', 'blocked')
    return {'ok'}
end
archive(s, s.from, s.to)
local status = status_of(s, s.to, s.from)
status_new(status, '1', '0')
redis.call('HSET', status, 'paused', '1')
redis.call('ZADD', set_of(s), s.fields.replPriority, s.to .. ':' .. s.from)
switch_route(s, s.to)
switch_move(s, 'in_progress', 'the route leads to ' .. raw(s.to))
redis.call('SELECT', app)
redis.call('DEL', 's:up:' .. s.user .. ':' .. s.bucket)
redis.call('SELECT', config)
return {'ok'}
