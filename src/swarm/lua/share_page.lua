-- Peers of some torrents. ARGV: prefix, cursor, about how many torrents, how many peers are a large swarm. Answers the time, the next
-- cursor, then info hashes and keys and entries of peers, in turns; those of a large swarm are left out.
-- include part_keys
local page = call('HSCAN', P .. 'torrent_ids', ARGV[2], 'COUNT', ARGV[3])
local out = {call('TIME')[1], page[1]}
for i = 1, #page[2], 2 do
    local addrs = P .. 'addrs:' .. page[2][i]
    local count = redis.pcall('HLEN', addrs)
    if type(count) == 'number' and count > 0 then -- G7
        out[#out + 1] = page[2][i + 1]
        out[#out + 1] = count < tonumber(ARGV[4]) and call('HGETALL', addrs) or {}
    end
end
return out
