-- Taking a peer out, and counting slots. docs/swarm.md has the keys.
-- include part_keys
local NO_V6 = '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
-- One leecher more or less of a user; that of the public mode, and one that is gone, have none.
local function slots(uid, by)
    local passkey = redis.call('HGET', P .. 'user_ids', uid)
    if passkey and redis.call('HINCRBY', P .. 'user:' .. passkey, 'slots_used', by) < 0 then
        redis.call('HSET', P .. 'user:' .. passkey, 'slots_used', '0')
    end
end
-- The ids of user and torrent in a peer's key: behind the peer id, which may hold any byte.
local function parts(member)
    return string.match(member, '^:([^:]*):([^:]*)$', 21)
end
-- What is known of a peer that is in no set any more.
local function forget(member, uid, tid)
    local old = redis.call('HGET', P .. 'addrs:' .. tid, member)
    redis.call('DEL', P .. member)
    redis.call('ZREM', P .. 'expiry', member)
    if old then
        redis.call('HDEL', P .. 'addrs:' .. tid, member)
        if string.byte(old, 1) == 80 then
            redis.call('SREM', P .. 'paused:' .. tid, member)
        end
        if string.sub(old, 8, 25) ~= NO_V6 then
            redis.call('SREM', P .. 'v6:' .. tid, member)
        end
    end
    if uid ~= '0' then
        redis.call('SREM', P .. 'userpeers:' .. uid, member)
    end
end
-- Out of everything. Answers whether it was a leecher and a seeder, as 0 or 1.
local function drop(member)
    local uid, tid = parts(member)
    local l = redis.call('SREM', P .. 'leechers:' .. tid, member)
    local s = redis.call('SREM', P .. 'seeders:' .. tid, member)
    if l == 1 then
        slots(uid, -1)
    end
    forget(member, uid, tid)
    return l, s
end
