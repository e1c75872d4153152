-- A peer's place.
-- include part_slots
-- Into one set and out of the other (I2), slots kept (I4). `old`: its entry; one without is in no set (I1). Answers whether it left the other,
-- and whether it is new in this.
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
