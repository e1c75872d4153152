-- Some peers of one torrent. ARGV: prefix, info hash, cursor, about how many. Answers the time, the next cursor, keys and entries of peers.
-- include part_keys
local id = call('HGET', P .. 'torrent:' .. ARGV[2], 'id')
local page = id and call('HSCAN', P .. 'addrs:' .. base36(id), ARGV[3], 'COUNT', ARGV[4]) or {'0', {}}
return {call('TIME')[1], page[1], page[2]}
