-- Looks for violations of the invariants (docs/swarm.md) in some keys, all read at one moment. ARGV: prefix, keys.
-- Answers, in turns, the name of the invariant and the key that violates it.
-- include part_drop
local out = {}
local function found(invariant, key)
    out[#out + 1], out[#out + 2] = invariant, key
end
-- Returns the values of the fields. If one of them is missing, reports that and returns false.
local function fields(key, ...)
    local values = call('HMGET', P .. key, ...)
    for i = 1, select('#', ...) do
        if not values[i] then
            found('I6', key)
            return false
        end
    end
    return values
end
local checks = {}
checks['torrent'] = function(key, hash)
    local t = fields(key, 'id', 'infohash', 'active', 'snatches', 'up_multiplier', 'down_multiplier', 'last_action')
    if t and (t[2] ~= hash or call('HGET', P .. 'torrent_ids', base36(t[1])) ~= hash) then
        found('I3', key)
    end
end
checks['user'] = function(key, passkey)
    local u = fields(key, 'id', 'passkey', 'up_multiplier', 'down_multiplier', 'slots', 'slots_used', 'snatches')
    if not u then
        return
    end
    local uid, used = base36(u[1]), 0
    for _, member in ipairs(call('SMEMBERS', P .. 'userpeers:' .. uid)) do
        local _, tid = parts(member)
        used = used + call('SISMEMBER', P .. 'leechers:' .. tid, member)
    end
    if used ~= tonumber(u[6]) then
        found('I4', key)
    end
    if call('HGET', P .. 'user_ids', uid) ~= passkey then
        found('I6', key)
    end
end
-- Checks a set of a torrent: each member has its hash, and an entry with one of the `states`.
local function members(key, tid, states)
    if call('HEXISTS', P .. 'torrent_ids', tid) == 0 then
        found('I3', key)
    end
    for _, member in ipairs(call('SMEMBERS', P .. key)) do
        local entry = call('HGET', P .. 'addrs:' .. tid, member)
        if not entry or call('EXISTS', P .. member) == 0 or not string.find(states, string.sub(entry, 1, 1), 1, true) then
            found('I1', member)
        end
    end
end
checks['seeders'] = function(key, tid)
    members(key, tid, 'S')
end
checks['leechers'] = function(key, tid)
    members(key, tid, 'LP')
end
checks['paused'] = function(key, tid)
    members(key, tid, 'P')
end
checks['v6'] = function(key, tid)
    members(key, tid, 'SLP')
end
checks['addrs'] = function(key, tid)
    if call('HLEN', P .. key) ~= call('SCARD', P .. 'seeders:' .. tid) + call('SCARD', P .. 'leechers:' .. tid) then
        found('I8', key)
    end
end
checks['userpeers'] = function(key, uid)
    if call('HEXISTS', P .. 'user_ids', uid) == 0 then
        found('I3', key)
    end
    for _, member in ipairs(call('SMEMBERS', P .. key)) do
        if call('EXISTS', P .. member) == 0 then
            found('I1', member)
        end
    end
end
local function peer(key, tid)
    local hash = call('HGET', P .. 'torrent_ids', tid)
    if not hash or call('EXISTS', P .. 'torrent:' .. hash) == 0 then
        found('I3', key)
    end
    if call('SISMEMBER', P .. 'seeders:' .. tid, key) + call('SISMEMBER', P .. 'leechers:' .. tid, key) ~= 1 then
        found('I2', key)
    end
    local p = fields(key, 'id', 'user_id', 'torrent_id', 'ip', 'port', 'uploaded', 'downloaded', 'left', 'last_announce')
    if not p then
        return
    end
    if call('ZSCORE', P .. 'expiry', key) ~= p[9] then
        found('I7', key)
    end
    local entry = call('HGET', P .. 'addrs:' .. tid, key)
    if not entry or string.sub(entry, 26) ~= string.match(entry, '^%d+:%d+:%d+:', 26) .. p[6] .. ':' .. p[7] .. ':' .. p[8] then
        found('I1', key)
    end
end
local function check(at)
    local key = string.sub(ARGV[at], #P + 1)
    local kind, rest = string.match(key, '^([%w]+):(.*)$')
    local uid, tid = parts(key)
    if call('EXISTS', ARGV[at]) == 1 then
        if uid and string.byte(key, 21) == 58 and call('TYPE', ARGV[at]).ok == 'hash' and (kind ~= 'torrent' or #rest ~= 20) and kind ~= 'user' then
            peer(key, tid)
        elseif checks[kind] then
            checks[kind](key, rest)
        end
    end
end
for i = 2, #ARGV do
    -- Reports a key that has another type, or whose related keys have another type (docs/swarm.md, G7).
    if not pcall(check, i) then
        found('I6', string.sub(ARGV[i], #P + 1))
    end
end
return out
