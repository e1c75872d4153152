-- Reads the peers of some torrents. ARGV: prefix, cursor, about how many torrents, the number of peers from which a swarm
-- is large. Answers the time and the next cursor; then for each torrent its info hash and a list of the keys and entries
-- of its peers, in turns. The list of a large swarm is empty.
-- include part_keys
local page = call('HSCAN', P .. 'torrent_ids', ARGV[2], 'COUNT', ARGV[3])
local out = {call('TIME')[1], page[1]}
for i = 1, #page[2], 2 do
    local addrs = P .. 'addrs:' .. page[2][i]
    local count = redis.pcall('HLEN', addrs)
    -- Skips a torrent whose key has another type (docs/swarm.md, G7).
    if type(count) == 'number' and count > 0 then
        out[#out + 1] = page[2][i + 1]
        out[#out + 1] = count < tonumber(ARGV[4]) and call('HGETALL', addrs) or {}
    end
end
return out
