-- Adds a seeder or leecher, or makes it one. ARGV as part_peer has them, then the user's id in base 36 and in base 10, and 'S' or 'L'.
-- Answers 1 when it came out of the other set, 0 when not, -1 without a torrent or the user: one that was removed leaves no peers.
-- include part_peer
-- include part_seat
local id = call('HGET', P .. 'torrent:' .. ARGV[2], 'id')
if not id then
    return -1
end
local uid, tid, seeder = ARGV[11], base36(id), ARGV[13] == 'S'
local member = ARGV[3] .. ':' .. uid .. ':' .. tid
local old = call('HGET', P .. 'addrs:' .. tid, member)
if not old and uid ~= '0' and call('HEXISTS', P .. 'user_ids', uid) == 0 then
    return -1
end
local left = seat(member, tid, uid, seeder, old)
write_peer(member, uid, tid, ARGV[12], id, seeder, old)
return left
