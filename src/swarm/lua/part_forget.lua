-- Taking a peer out.
-- include part_slots
-- What is known of a peer that is in no set any more.
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
