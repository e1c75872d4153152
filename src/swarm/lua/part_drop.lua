-- Removes a peer completely, by its key. A peer's key is <peer id>:<user id>:<torrent id> (docs/swarm.md, Keys).
-- include part_forget
-- Returns the ids of user and torrent from a peer's key. They follow the 20 bytes of the peer id, which may be any bytes.
local function parts(member)
    return string.match(member, '^:([^:]*):([^:]*)$', 21)
end
-- Removes a peer and frees its slot. Returns 1 or 0 for "it was a leecher", and 1 or 0 for "it was a seeder".
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
