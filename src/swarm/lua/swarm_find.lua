-- A torrent with its peers as of one moment. ARGV: prefix, info hash. Answers its id, active, snatches, multipliers, last action, and the
-- entries of its peers; nil: there is none.
-- include part_keys
local torrent = call('HMGET', P .. 'torrent:' .. ARGV[2], 'id', 'active', 'snatches', 'up_multiplier', 'down_multiplier', 'last_action')
if not torrent[1] then
    return false
end
return {torrent, call('HGETALL', P .. 'addrs:' .. base36(torrent[1]))}
