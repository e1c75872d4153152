-- Adds a peer as a seeder or leecher, or turns it into one. ARGV: the arguments of part_peer, the user's id in base 36 and
-- in base 10, 'S' (seeder) or 'L' (leecher). Answers 1 when the peer was in the other set, else 0; -1 when the torrent or
-- the user does not exist, so that a removed torrent or user gets no peers.
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
