-- Reads a torrent with its peers, at one moment. ARGV: prefix, info hash. Answers a list of the torrent's id, active,
-- snatches, multipliers and last action, and a list of the keys and entries of its peers, in turns; nil: there is no such
-- torrent.
-- include part_keys
local torrent = call('HMGET', P .. 'torrent:' .. ARGV[2], 'id', 'active', 'snatches', 'up_multiplier', 'down_multiplier', 'last_action')
if not torrent[1] then
    return false
end
return {torrent, call('HGETALL', P .. 'addrs:' .. base36(torrent[1]))}
