-- Adds a torrent, or changes the multipliers of a torrent that exists. ARGV: prefix, channel, info hash, id ('0': the next
-- free id), active, snatches, the multipliers for upload and download, last action ('0': now), and '1' if the torrent is
-- only offered, for an object: then an existing torrent keeps its multipliers, and a withdrawn one is not added.
-- Answers the torrent's id; nil: another torrent has the id; '0': an operator has withdrawn the offered torrent.
-- include part_number
local key, withdrawn, offered = P .. 'torrent:' .. ARGV[3], P .. 'w:torrents_withdrawn', ARGV[10] == '1'
if offered and call('SISMEMBER', withdrawn, ARGV[3]) == 1 then
    return '0'
end
call('SREM', withdrawn, ARGV[3])
local id, id36 = call('HGET', key, 'id'), nil
if id then
    if not offered then
        call('HSET', key, 'up_multiplier', ARGV[7], 'down_multiplier', ARGV[8])
    end
    call('HDEL', key, 'made')
else
    id, id36 = number('torrent', ARGV[4])
    if not id then
        return false
    end
    local at = ARGV[9] ~= '0' and ARGV[9] or call('TIME')[1]
    call('HSET', key, 'id', id, 'infohash', ARGV[3], 'active', ARGV[5], 'snatches', ARGV[6], 'up_multiplier', ARGV[7],
        'down_multiplier', ARGV[8], 'last_action', at)
    call('HSET', P .. 'torrent_ids', id36, ARGV[3])
end
call('PUBLISH', ARGV[2], 'torrent ' .. ARGV[3])
return id
