-- Some torrents or users. ARGV: prefix, 'torrent' or 'user', cursor, about how many. Answers the next cursor, then for each its info hash or
-- passkey and its fields: as swarm_find has them, or all.
-- include part_keys
local page = call('HSCAN', P .. ARGV[2] .. '_ids', ARGV[3], 'COUNT', ARGV[4])
local out = {page[1]}
for i = 2, #page[2], 2 do
    local name = page[2][i]
    out[#out + 1] = name
    if ARGV[2] == 'torrent' then
        out[#out + 1] = call('HMGET', P .. 'torrent:' .. name, 'id', 'active', 'snatches', 'up_multiplier', 'down_multiplier', 'last_action')
    else
        out[#out + 1] = call('HGETALL', P .. 'user:' .. name)
    end
end
return out
