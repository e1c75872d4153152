-- Reads some peers of one torrent. ARGV: prefix, info hash, cursor, about how many peers. Answers the time, the next
-- cursor, and a list of the keys and entries of peers, in turns.
-- include part_keys
local id = redis.pcall('HGET', P .. 'torrent:' .. ARGV[2], 'id')
local page = type(id) == 'string' and redis.pcall('HSCAN', P .. 'addrs:' .. base36(id), ARGV[3], 'COUNT', ARGV[4]) or {'0', {}}
-- Skips a torrent whose key has another type (docs/swarm.md, G7).
if page.err then
    page = {'0', {}}
end
return {call('TIME')[1], page[1], page[2]}
