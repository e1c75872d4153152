-- Taking a peer out of everything, by its key.
-- include part_forget
-- The ids of user and torrent in a peer's key: behind the peer id, which may hold any byte.
local function parts(member)
    return string.match(member, '^:([^:]*):([^:]*)$', 21)
end
-- Answers whether it was a leecher and a seeder, as 0 or 1.
local function drop(member)
    local uid, tid = parts(member)
    local l = call('SREM', P .. 'leechers:' .. tid, member)
    local s = call('SREM', P .. 'seeders:' .. tid, member)
    if l == 1 then
        slots(uid, -1)
    end
    forget(member, uid, tid)
    return l, s
end
