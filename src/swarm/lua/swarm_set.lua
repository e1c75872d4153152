-- Refreshes a seeder or leecher. ARGV as swarm_put has them. Answers 1, or 0 when there is none.
-- include part_peer
local id = redis.call('HGET', P .. 'torrent:' .. ARGV[2], 'id')
if not id then
    return 0
end
local uid, tid, seeder = ARGV[11], base36(id), ARGV[13] == 'S'
local member = ARGV[3] .. ':' .. uid .. ':' .. tid
local old = redis.call('HGET', P .. 'addrs:' .. tid, member)
if not old or (string.byte(old, 1) == 83) ~= seeder then
    return 0
end
write_peer(member, uid, tid, {ARGV[12], id}, redis.call('TIME')[1], seeder, old)
return 1
