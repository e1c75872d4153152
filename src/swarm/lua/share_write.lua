-- Writes a batch of changes of public swarms and publishes them. A batch that is sent again, because its answer was
-- lost, is recognized by its number.
-- ARGV: prefix, channel, message to publish, most torrents (beyond it none is made), most peers (beyond it none is
-- added), the tracker's instance, the batch's number; then for each change the arguments of part_peer from the info
-- hash on, and the kind of change: S (seeder), C (a leecher became a seeder), L (leecher), X (stopped), Y (stopped with
-- nothing left).
-- Answers how many changes were refused for good (docs/swarm.md, H5), and why the first of them was refused.
-- include part_peer
-- include part_seat
-- include part_drop
-- include part_number
-- include part_made
local torrents_max, peers_max = tonumber(ARGV[4]), tonumber(ARGV[5])
local function torrent_of(hash, make)
    local id = call('HGET', P .. 'torrent:' .. hash, 'id')
    if not id and make and call('HLEN', P .. 'torrent_ids') < torrents_max and call('ZCARD', P .. 'expiry') < peers_max then
        local id36
        id, id36 = number('torrent', '0')
        call('HSET', P .. 'torrent:' .. hash, 'id', id, 'infohash', hash, 'active', '1', 'snatches', '0', 'up_multiplier', '1',
            'down_multiplier', '1', 'last_action', call('TIME')[1], 'made', '1')
        call('HSET', P .. 'torrent_ids', id36, hash)
    end
    return id
end
local function change(hash, id, what)
    local tid = base36(id)
    local member, snatched = ARGV[at + 3] .. ':0:' .. tid, false
    if what == 'X' or what == 'Y' then
        local l, s = drop(member)
        snatched = what == 'Y' and l == 1 and s == 0
        unmake(tid)
    else
        local old = call('HGET', P .. 'addrs:' .. tid, member)
        if not old and call('ZCARD', P .. 'expiry') >= peers_max then
            return
        end
        local seeder = what ~= 'L'
        local left, new = seat(member, tid, '0', seeder, old)
        snatched = seeder and (left == 1 and new == 1 or what == 'C' and not old)
        local now = write_peer(member, '0', tid, '0', id, seeder, old)
        call('HSET', P .. 'torrent:' .. hash, 'last_action', now)
    end
    if snatched and call('EXISTS', P .. 'torrent:' .. hash) == 1 then
        call('HINCRBY', P .. 'torrent:' .. hash, 'snatches', 1)
    end
end
local batch = P .. 'share_batch:' .. ARGV[6]
if call('GET', batch) == ARGV[7] then
    return {0, ''}
end
-- If the store takes no writes now, this first write fails, before anything else is done.
call('SET', batch, ARGV[7], 'EX', 86400)
local refused, why, last = 0, '', nil
-- Counts a refused change. The changes of one peer follow each other and count once. Undoes what the change has written,
-- as far as the types of the keys allow.
local function refuse(id, peer, reason)
    if peer ~= last then
        refused, last, why = refused + 1, peer, why ~= '' and why or tostring(reason)
    end
    if id then
        pcall(drop, ARGV[at + 3] .. ':0:' .. base36(id))
        pcall(unmake, base36(id))
    end
end
for i = 8, #ARGV, 10 do
    at = i - 2
    local hash, what = ARGV[i], ARGV[i + 9]
    local known, id = pcall(torrent_of, hash, what ~= 'X' and what ~= 'Y')
    local done, reason = known, id
    if known and id then
        done, reason = pcall(change, hash, id, what)
    end
    if not done then
        refuse(known and id, hash .. ARGV[i + 1] .. ARGV[i + 7], reason)
    end
end
call('PUBLISH', ARGV[2], ARGV[3])
return {refused, why}
