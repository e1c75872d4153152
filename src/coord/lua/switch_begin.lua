-- Begins a switch. ARGV: numbers of appDB, queueDB and configDB; user, bucket, escaped; time at which the switch was
-- made; the storage to which the route leads without a routing policy. Answers {'ok'} or a refusal.
-- include part_switch
-- include part_unsure
local app, config = ARGV[1], ARGV[3]
local s = switch_mine()
if not s then
    return {'gone'}
end
if s.status ~= 'not_started' and (s.live or s.status ~= 'error' and s.status ~= 'skipped') then
    return {'state', s.status}
end
if store_unsure(ARGV[2], config) then
    return {'unsure'}
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
switch_turn(s, app, config)
switch_move(s, 'in_progress', 'the route leads to ' .. raw(s.to))
return {'ok'}
