-- Writing a peer. ARGV: prefix, info hash, peer id, ip, port, uploaded, downloaded, left, address in compact form, whether it is
-- paused ('1', ''); all but the prefix `at` further behind.
-- include part_slots
local at = 0
-- The hash and what stands beside it. `old` is its entry of addrs:<tid>, or false: then it is new.
-- An entry: S, L or P (a leecher that is paused); 6 and 18 bytes, zeros where it has no such address; then text: last announce, last
-- announce over IPv4, over IPv6, uploaded, downloaded, left.
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
    -- What cannot have changed is not written again, unless fields are found missing (I6).
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
