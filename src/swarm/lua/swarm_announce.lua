-- An announce of the private mode: docs/swarm.md, Transitions. ARGV as part_peer has them, then passkey, whether it is stopped ('1'), or
-- started and maybe by one who has a link alone ('2'), else '', how many peers to look at of each set, how many of those with an IPv6 address, records that may wait ('': no feed),
-- how many peers there may be in all, how many of one user ('0': any number).
-- Answers why it is refused: 1 user, 2 client, 3 torrent, 4 inactive, 5 slots, 6 the feed is full, 7 too many peers, 8 too many of this user; nothing is written then. Else a list: seeders, leechers,
-- snatches, now, the user's id in base 36; then keys of peers and their entries, in turns: of the first set, of the second, with IPv6.
-- include part_peer
-- include part_seat
-- include part_drop
local ukey, tkey, stopped, done = P .. 'user:' .. ARGV[11], P .. 'torrent:' .. ARGV[2], ARGV[12] == '1', ARGV[8] == '0'
local user = call('HMGET', ukey, 'id', 'up_multiplier', 'down_multiplier', 'slots', 'slots_used')
if not user[1] then
    return 1
end
-- An entry of the whitelist is a beginning of the peer id; without any all clients are approved. The usual lengths first.
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
-- The feed: a record is the peer id, then text. The first of the list is the number of the record before the others.
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
-- Members that have no hash are taken out on sight (I1).
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
