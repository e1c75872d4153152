-- Puts a peer into the set `seeders` or `leechers` of its torrent.
-- include part_slots
-- Moves the peer into one set and out of the other (docs/swarm.md, I2), and keeps the user's slots_used right (I4).
-- `old` is the peer's entry in addrs:<tid>; a peer without an entry is in no set (I1). Returns 1 or 0 for "it was in
-- the other set", and 1 or 0 for "it is new in this set".
local function seat(member, tid, uid, seeder, old)
    local left = old and call('SREM', P .. (seeder and 'leechers:' or 'seeders:') .. tid, member) or 0
    local new = call('SADD', P .. (seeder and 'seeders:' or 'leechers:') .. tid, member)
    if seeder and left == 1 then
        slots(uid, -1)
    elseif not seeder and new == 1 then
        slots(uid, 1)
    end
    return left, new
end
