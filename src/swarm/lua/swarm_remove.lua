-- Removes a seeder or leecher. ARGV: prefix, info hash, peer id, user's id in base 36, 'S' or 'L'. One that is in the other set too stays
-- there. Answers 1, or 0 when there was none.
-- include part_drop
local id = redis.call('HGET', P .. 'torrent:' .. ARGV[2], 'id')
if not id then
    return 0
end
local uid, tid, seeder = ARGV[4], base36(id), ARGV[5] == 'S'
local member = ARGV[3] .. ':' .. uid .. ':' .. tid
if redis.call('SREM', P .. (seeder and 'seeders:' or 'leechers:') .. tid, member) == 0 then
    return 0
end
if not seeder then
    slots(uid, -1)
end
if redis.call('SISMEMBER', P .. (seeder and 'leechers:' or 'seeders:') .. tid, member) == 0 then
    forget(member, uid, tid)
    return 1
end
local old = redis.call('HGET', P .. 'addrs:' .. tid, member)
if old then
    redis.call('HSET', P .. 'addrs:' .. tid, member, (seeder and 'L' or 'S') .. string.sub(old, 2))
end
redis.call('HDEL', P .. member, 'paused')
redis.call('SREM', P .. 'paused:' .. tid, member)
return 1
