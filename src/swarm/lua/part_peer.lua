-- Writes a peer. ARGV: prefix, info hash, peer id, ip, port, uploaded, downloaded, left, address in compact form, paused
-- ('1' or ''). The arguments after the prefix may stand further behind: `at` is added to their positions.
-- include part_slots
local at = 0
-- Writes the peer's hash, its entry in addrs:<tid>, and its membership in the other keys. `uid` and `tid` are the ids of
-- user and torrent in base 36, `uid10` and `tid10` in base 10. `old` is the peer's present entry; false: the peer is new.
-- An entry is: S, L or P (a paused leecher); 6 bytes of IPv4 and 18 of IPv6 address and port, zeros where the peer has
-- no such address; then as text the time of the last announce, of the last announce over IPv4, of the last one over IPv6,
-- uploaded, downloaded, left. Returns the present time.
local function write_peer(member, uid, tid, uid10, tid10, seeder, old)
    local key, now, state = P .. member, call('TIME')[1], seeder and 'S' or ARGV[at + 10] == '1' and 'P' or 'L'
    local up, down, left, addr = ARGV[at + 6], ARGV[at + 7], ARGV[at + 8], ARGV[at + 9]
    local four, six, last, t4, t6 = '\0\0\0\0\0\0', '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0', nil, '0', '0'
    if old then
        four, six = string.sub(old, 2, 7), string.sub(old, 8, 25)
        last, t4, t6 = string.match(old, '^(%d+):(%d+):(%d+)', 26)
    elseif uid ~= '0' then
        call('SADD', P .. 'userpeers:' .. uid, member)
    end
    -- A refresh writes only the fields that can have changed. If one of them was missing, all fields are written
    -- (docs/swarm.md, G5).
    if not old or (addr ~= four and addr ~= six) or t4 ~= '0' and t6 ~= '0' or
        call('HSET', key, 'uploaded', up, 'downloaded', down, 'left', left, 'last_announce', now) > 0 then
        call('HSET', key, 'id', ARGV[at + 3], 'user_id', uid10, 'torrent_id', tid10, 'ip', ARGV[at + 4], 'port', ARGV[at + 5], 'uploaded', up, 'downloaded',
            down, 'left', left, 'last_announce', now)
    end
    if last ~= now then
        call('ZADD', P .. 'expiry', now, member)
    end
    if #addr == 6 then
        four, t4 = addr, now
    else
        if t6 == '0' then
            call('SADD', P .. 'v6:' .. tid, member)
        end
        six, t6 = addr, now
    end
    call('HSET', P .. 'addrs:' .. tid, member, state .. four .. six .. now .. ':' .. t4 .. ':' .. t6 .. ':' .. up .. ':' .. down .. ':' .. left)
    local was = old and string.byte(old, 1) == 80
    if state == 'P' and not was then
        call('HSET', key, 'paused', '1')
        call('SADD', P .. 'paused:' .. tid, member)
    elseif was and state ~= 'P' then
        call('HDEL', key, 'paused')
        call('SREM', P .. 'paused:' .. tid, member)
    end
    return now
end
