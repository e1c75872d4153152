-- Removes the data of a peer.
-- include part_slots
-- Deletes everything that the store has about a peer that is neither in seeders nor in leechers any more.
local function forget(member, uid, tid)
    local old = call('HGET', P .. 'addrs:' .. tid, member)
    call('DEL', P .. member)
    call('ZREM', P .. 'expiry', member)
    if old then
        call('HDEL', P .. 'addrs:' .. tid, member)
        if string.byte(old, 1) == 80 then
            call('SREM', P .. 'paused:' .. tid, member)
        end
        if string.sub(old, 8, 25) ~= '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0' then
            call('SREM', P .. 'v6:' .. tid, member)
        end
    end
    if uid ~= '0' then
        call('SREM', P .. 'userpeers:' .. uid, member)
    end
end
