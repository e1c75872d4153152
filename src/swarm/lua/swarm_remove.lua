-- Removes a peer from the seeders or from the leechers. ARGV: prefix, the torrent's id in base 36, peer id, the user's id
-- in base 36, 'S' (seeders) or 'L' (leechers). A peer that is in the other set too stays there. Answers 1, or 0 when the
-- peer was not in the set.
-- include part_forget
local tid, uid, seeder = ARGV[2], ARGV[4], ARGV[5] == 'S'
local member = ARGV[3] .. ':' .. uid .. ':' .. tid
if call('SREM', P .. (seeder and 'seeders:' or 'leechers:') .. tid, member) == 0 then
    return 0
end
if not seeder then
    slots(uid, -1)
end
if call('SISMEMBER', P .. (seeder and 'leechers:' or 'seeders:') .. tid, member) == 0 then
    forget(member, uid, tid)
    return 1
end
local old = call('HGET', P .. 'addrs:' .. tid, member)
if old then
    call('HSET', P .. 'addrs:' .. tid, member, (seeder and 'L' or 'S') .. string.sub(old, 2))
end
call('HDEL', P .. member, 'paused')
call('SREM', P .. 'paused:' .. tid, member)
return 1
