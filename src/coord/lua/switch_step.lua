-- Changes the status of a switch, but neither routes nor replications.
-- ARGV: numbers of appDB, queueDB and configDB; user, bucket, escaped; time at which the switch was made; new status,
-- text for the history. Answers {'ok'} or a refusal.
-- include part_switch
local to, text = ARGV[7], ARGV[8]
local legal = {
    not_started = {error = true, skipped = true},
    error = {error = true, skipped = true},
    skipped = {error = true, skipped = true},
    in_progress = {check_in_progress = true, error = true},
    check_in_progress = {error = true},
}
local s = switch_mine()
if not s then
    return {'gone'}
end
local going = s.status == 'in_progress' or s.status == 'check_in_progress'
if not (legal[s.status] or {})[to] or s.live and (going or to ~= 'error') then
    return {'state', s.status}
end
if to == 'check_in_progress' and lag(s, s.from, s.to) > 0 then
    return {'lag', tostring(lag(s, s.from, s.to))}
end
if going and to == 'error' then
    switch_block(s, 'SREM')
end
if not going then
    redis.call('HSET', s.key, 'startedAt', rfc3339())
end
switch_move(s, to, text)
return {'ok'}
