-- Handles an announce in private mode (docs/swarm.md, Transitions). ARGV: the arguments of part_peer; passkey; '1' if the
-- client stopped, '2' if it may have only a magnet link, else ''; how many peers to choose from the sets; how many from
-- those with an IPv6 address; how many records may wait in the feed ('': there is no feed); most peers in the store; most
-- peers of one user ('0' for these two: any number).
-- Answers a number when it refuses the announce, and writes nothing: 1 unknown user, 2 the client is not approved, 3 unknown
-- torrent, 4 the torrent is inactive, 5 no free slot, 6 the feed is full, 7 too many peers, 8 too many peers of the user.
-- Else it answers a list: number of seeders, of leechers, of snatches; the time; the user's id in base 36; then pairs of
-- lists, the keys of peers and their entries: from the set that the client prefers, from the other set, with IPv6.
-- include part_peer
-- include part_seat
-- include part_drop
local ukey, tkey, stopped, done = P .. 'user:' .. ARGV[11], P .. 'torrent:' .. ARGV[2], ARGV[12] == '1', ARGV[8] == '0'
local user = call('HMGET', ukey, 'id', 'up_multiplier', 'down_multiplier', 'slots', 'slots_used')
if not user[1] then
    return 1
end
-- An entry of the whitelist is the beginning of a peer id. The usual lengths are tried first.
local function approved()
    local id, sub = ARGV[3], string.sub
    for _, is in ipairs(call('SMISMEMBER', P .. 'whitelist', sub(id, 1, 8), sub(id, 1, 6), sub(id, 1, 3), sub(id, 1, 5), sub(id, 1, 4))) do
        if is == 1 then
            return true
        end
    end
    for i = 1, 20 do
        if call('SISMEMBER', P .. 'whitelist', sub(id, 1, i)) == 1 then
            return true
        end
    end
    return false
end
if call('EXISTS', P .. 'whitelist') == 1 and not approved() then
    return 2
end
local torrent = call('HMGET', tkey, 'id', 'active', 'up_multiplier', 'down_multiplier', 'snatches')
if not torrent[1] then
    return 3
end
local unprune = torrent[2] == '0' and done and not stopped
if torrent[2] == '0' and not done and not stopped then
    return 4
end
local waiting = ARGV[15] ~= '' and call('LLEN', P .. 'deltas') or 0
if waiting > 0 and waiting > tonumber(ARGV[15]) then
    return 6
end
local uid, tid = base36(user[1]), base36(torrent[1])
local member, seeders, leechers, addrs = ARGV[3] .. ':' .. uid .. ':' .. tid, P .. 'seeders:' .. tid, P .. 'leechers:' .. tid, P .. 'addrs:' .. tid
local old = call('HGET', addrs, member)
if not stopped and not done and tonumber(user[4]) >= 0 and tonumber(user[5]) >= tonumber(user[4]) and
    call('SISMEMBER', leechers, member) == 0 then
    return 5
end
if not old and not stopped then
    if ARGV[17] ~= '0' and call('SCARD', P .. 'userpeers:' .. uid) >= tonumber(ARGV[17]) then
        return 8
    end
    if ARGV[16] ~= '0' and call('ZCARD', P .. 'expiry') >= tonumber(ARGV[16]) then
        return 7
    end
end
local now, created, snatched, known = nil, false, false, true
if stopped then
    now = call('TIME')[1]
    local l, s = drop(member)
    known = l + s > 0
    snatched = l == 1 and s == 0 and done
else
    local left, new = seat(member, tid, uid, done, old)
    created = left == 0 and new == 1
    snatched = done and left == 1 and new == 1
    now = write_peer(member, uid, tid, user[1], torrent[1], done, old)
end
if snatched then
    torrent[5] = call('HINCRBY', tkey, 'snatches', 1)
    call('HINCRBY', ukey, 'snatches', 1)
end
if unprune then
    call('HSET', tkey, 'active', '1', 'last_action', now)
elseif known then
    call('HSET', tkey, 'last_action', now)
end
-- Appends a record to the feed (part_feed.lua): the peer id, then fields as text. A peer's first announce has the delta 0.
local function feed()
    local up, down = 0, 0
    if old then
        local u, d = string.match(old, '^%d+:%d+:%d+:(%d+):(%d+)', 26)
        up, down = math.min(1e18, math.max(0, ARGV[6] - u)), math.min(1e18, math.max(0, ARGV[7] - d))
    end
    local flags = (created and 'c' or '') .. (snatched and 's' or '') .. (stopped and 'x' or '') .. (done and 'd' or '')
    call('RPUSH', P .. 'deltas', ARGV[3] .. string.format('%s %s %s %s- %s %.0f %.0f %.17g %.17g', user[1], torrent[1], now, flags, ARGV[8],
        up, down, up * user[2] * torrent[3], down * user[3] * torrent[4]))
end
if waiting > 0 and known then
    feed()
end
local out, wanted, wanted6 = {call('SCARD', seeders), call('SCARD', leechers), torrent[5], now, uid}, tonumber(ARGV[13]), tonumber(ARGV[14])
-- Adds up to `n` random members of `set` and their entries to the answer. Members that have no hash are removed
-- (docs/swarm.md, I1).
local function sample(set, n)
    local members = call('SRANDMEMBER', set, n)
    local entries = #members > 0 and call('HMGET', addrs, unpack(members)) or {}
    for i = 1, #members do
        if not entries[i] and call('EXISTS', P .. members[i]) == 0 then
            call('SREM', set, members[i])
        end
    end
    out[#out + 1], out[#out + 2] = members, entries
    return #members
end
if not stopped and wanted > 0 then
    if not done then
        wanted = wanted - sample(seeders, wanted)
    end
    if wanted > 0 then
        wanted = wanted - sample(leechers, wanted)
    end
    if wanted > 0 and ARGV[12] == '2' then
        sample(seeders, wanted)
    end
end
if not stopped and wanted6 > 0 then
    sample(P .. 'v6:' .. tid, wanted6)
end
return out
