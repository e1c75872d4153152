-- Functions for the switch of a bucket (docs/replication.md, "Switch"). configDB must be selected. Names are escaped,
-- as in keys.
-- include part_policy
local history_max = 1000
local function raw(part)
    return (string.gsub(part, '%%(%x%x)', function(hex) return string.char(tonumber(hex, 16)) end))
end
-- Reads the switch of a bucket: its hash (`fields`), and the parts of it. `id`, `from` and `to` are those of its
-- replication. `live`: it is a switch without downtime.
local function switch_read(user, bucket)
    local s = {user = user, bucket = bucket, key = 'p:switch:' .. user .. ':' .. bucket, fields = {}}
    local row = redis.call('HGETALL', s.key)
    for i = 1, #row, 2 do
        s.fields[row[i]] = row[i + 1]
    end
    s.status = s.fields.lastStatus
    s.id = s.fields.replicationID
    if s.id then
        s.from, s.to = string.match(s.id, '^[^:]*:[^:]*:([^:]*):([^:]*)$')
    end
    s.live = tonumber(s.fields.multipartTTL or '0') > 0
    return s
end
-- Answers the key of the status of the replication from one side to the other.
local function status_of(s, from, to)
    return 'p:repl_st:' .. s.user .. ':' .. s.bucket .. ':' .. from .. ':' .. to
end
local function set_of(s)
    return 'p:repl:' .. s.user .. ':' .. s.bucket
end
-- Raises the epochs of both directions, so that a gateway that has them records the changes of both sides.
local function switch_changed(s)
    config_changed()
    local name = s.user .. ':' .. s.bucket .. ':'
    policy_changed(name .. s.from .. ':' .. s.to, s.from .. ':' .. s.bucket)
    policy_changed(name .. s.to .. ':' .. s.from, s.to .. ':' .. s.bucket)
end
local function switch_note(s, status, text)
    local key = 'p:switch-hist:' .. s.user .. ':' .. s.bucket
    redis.call('RPUSH', key, rfc3339() .. '|' .. (s.status or '') .. ' -> ' .. status .. ': ' .. text)
    redis.call('LTRIM', key, -history_max, -1)
end
local function switch_move(s, status, text)
    switch_note(s, status, text)
    redis.call('HSET', s.key, 'lastStatus', status)
    switch_changed(s)
end
local function switch_drop(s, text)
    switch_note(s, 'deleted', text)
    redis.call('DEL', s.key)
    switch_changed(s)
end
-- Blocks the bucket on both sides (`command` SADD), or unblocks it (SREM). Both sides are blocked so that nobody can
-- make the bucket again on the other one meanwhile.
local function switch_block(s, command)
    policy_block(command, s.from, raw(s.bucket))
    policy_block(command, s.to, raw(s.bucket))
end
-- Leads the route to this storage: clients use this side from now on, and the other side is a copy.
local function switch_route(s, storage)
    policy_places(s.user, s.bucket, storage, raw(storage), storage == s.from and s.to or s.from)
end
local function archive(s, from, to)
    redis.call('ZREM', set_of(s), from .. ':' .. to)
    redis.call('HSET', status_of(s, from, to), 'archived', '1', 'archived_at', rfc3339())
end
-- For a switch without downtime: clients use the new side from now on, and their changes there are not copied back
-- until the old side may be left (docs/replication.md, S4). `app`, `config`: numbers of appDB and configDB.
local function switch_turn(s, app, config)
    archive(s, s.from, s.to)
    local status = status_of(s, s.to, s.from)
    status_new(status, '1', '0')
    redis.call('HSET', status, 'paused', '1')
    redis.call('ZADD', set_of(s), s.fields.replPriority, s.to .. ':' .. s.from)
    switch_route(s, s.to)
    redis.call('SELECT', app)
    redis.call('DEL', 's:up:' .. s.user .. ':' .. s.bucket)
    redis.call('SELECT', config)
end
-- Answers the number of open events. Events that failed for good are open too.
local function lag(s, from, to)
    local row = redis.call('HMGET', status_of(s, from, to), 'events', 'events_done')
    return tonumber(row[1] or '0') - tonumber(row[2] or '0')
end
-- Answers why the bucket cannot be switched; nil: it can. `ready`: the switch begins now, so the copy must be complete.
local function switch_refused(s, route, ready)
    local row = redis.call('HMGET', status_of(s, s.from, s.to), 'created_at', 'archived', 'paused', 'agent_url', 'listing_started',
        'init_done_at', 'obj_listed', 'obj_done', 'obj_failed')
    if not row[1] then
        return {'none'}
    end
    if row[2] == '1' or not redis.call('ZSCORE', set_of(s), s.from .. ':' .. s.to) then
        return {'archived'}
    end
    if row[4] and row[4] ~= '' then
        return {'agent'}
    end
    if redis.call('ZCARD', set_of(s)) ~= 1 then
        return {'many'}
    end
    local at = redis.call('GET', 'p:route:' .. s.user .. ':' .. s.bucket) or redis.call('GET', 'p:route:' .. s.user) or route
    if at ~= raw(s.from) then
        return {'route', at}
    end
    for _, side in ipairs({s.from, s.to}) do
        if redis.call('SISMEMBER', 'p:route_block:' .. side, raw(s.bucket)) == 1 then
            return {'blocked', raw(side)}
        end
    end
    if not ready then
        return nil
    end
    if row[5] ~= '1' or not row[6] or row[8] + row[9] < tonumber(row[7]) then
        return {'init'}
    end
    if row[9] ~= '0' then
        return {'failed', row[9]}
    end
    if row[3] == '1' then
        return {'paused'}
    end
    return nil
end
-- Reads the switch that a transition is for: ARGV 4 to 6 are user, bucket, and the time at which the switch was made.
-- nil: the bucket has another switch, or none, by now.
local function switch_mine()
    local s = switch_read(ARGV[4], ARGV[5])
    return s.status and s.fields.createdAt == ARGV[6] and s or nil
end
