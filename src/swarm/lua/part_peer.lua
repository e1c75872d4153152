-- Writing a peer. ARGV: prefix, info hash, peer id, ip, port, uploaded, downloaded, left, address in compact form, whether it is
-- paused ('1', '').
-- include part_drop
-- Into one set and out of the other (I2), slots kept (I4). Answers whether it left the other, and whether it is new in this.
local function seat(member, tid, uid, seeder)
    local left = redis.call('SREM', P .. (seeder and 'leechers:' or 'seeders:') .. tid, member)
    local new = redis.call('SADD', P .. (seeder and 'seeders:' or 'leechers:') .. tid, member)
    if seeder and left == 1 then
        slots(uid, -1)
    elseif not seeder and new == 1 then
        slots(uid, 1)
    end
    return left, new
end
-- The hash and what stands beside it. `old` is its entry of addrs:<tid>, or false: then it is new.
-- An entry: S, L or P (a leecher that is paused); 6 and 18 bytes, zeros where it has no such address; then text: last announce, last
-- announce over IPv4, over IPv6, uploaded, downloaded, left.
local function write_peer(member, uid, tid, ids, now, seeder, old)
    local key, state = P .. member, seeder and 'S' or ARGV[10] == '1' and 'P' or 'L'
    redis.call('HSET', key, 'id', ARGV[3], 'user_id', ids[1], 'torrent_id', ids[2], 'ip', ARGV[4], 'port', ARGV[5], 'uploaded', ARGV[6],
        'downloaded', ARGV[7], 'left', ARGV[8], 'last_announce', now)
    redis.call('ZADD', P .. 'expiry', now, member)
    local four, six, t4, t6 = '\0\0\0\0\0\0', NO_V6, '0', '0'
    if old then
        four, six = string.sub(old, 2, 7), string.sub(old, 8, 25)
        t4, t6 = string.match(old, '^%d+:(%d+):(%d+)', 26)
    elseif uid ~= '0' then
        redis.call('SADD', P .. 'userpeers:' .. uid, member)
    end
    if #ARGV[9] == 6 then
        four, t4 = ARGV[9], now
    else
        if t6 == '0' then
            redis.call('SADD', P .. 'v6:' .. tid, member)
        end
        six, t6 = ARGV[9], now
    end
    redis.call('HSET', P .. 'addrs:' .. tid, member,
        table.concat({state .. four .. six .. now, t4, t6, ARGV[6], ARGV[7], ARGV[8]}, ':'))
    local was = old and string.byte(old, 1) == 80
    if state == 'P' and not was then
        redis.call('HSET', key, 'paused', '1')
        redis.call('SADD', P .. 'paused:' .. tid, member)
    elseif state ~= 'P' and was then
        redis.call('HDEL', key, 'paused')
        redis.call('SREM', P .. 'paused:' .. tid, member)
    end
end
