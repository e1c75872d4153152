-- Refreshes a seeder or leecher. ARGV: the arguments of swarm_put, then the torrent's id in base 10 and in base 36.
-- Answers 1; 0: there is no such peer in this role. The torrent need not be looked up: a peer that has an entry has a
-- torrent (docs/swarm.md, I3).
-- include part_peer
local uid, tid, seeder = ARGV[11], ARGV[15], ARGV[13] == 'S'
local member = ARGV[3] .. ':' .. uid .. ':' .. tid
local old = call('HGET', P .. 'addrs:' .. tid, member)
if not old or (string.byte(old, 1) == 83) ~= seeder then
    return 0
end
write_peer(member, uid, tid, ARGV[12], ARGV[14], seeder, old)
return 1
