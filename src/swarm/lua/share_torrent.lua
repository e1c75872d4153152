-- Some peers of one torrent. ARGV: prefix, info hash, cursor, about how many. Answers the time, the next cursor, keys and entries of peers.
-- include part_keys
local id = redis.pcall('HGET', P .. 'torrent:' .. ARGV[2], 'id')
local page = type(id) == 'string' and redis.pcall('HSCAN', P .. 'addrs:' .. base36(id), ARGV[3], 'COUNT', ARGV[4]) or {'0', {}}
if page.err then -- G7
    page = {'0', {}}
end
return {call('TIME')[1], page[1], page[2]}
