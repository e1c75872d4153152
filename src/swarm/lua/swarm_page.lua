-- Reads some torrents or users. ARGV: prefix, 'torrent' or 'user', cursor, about how many. Answers the next cursor; then, in
-- turns, an info hash or passkey and its fields: of a torrent in the order of swarm_find, of a user all names and values.
-- Torrents that nobody added are left out.
-- include part_keys
local page = call('HSCAN', P .. ARGV[2] .. '_ids', ARGV[3], 'COUNT', ARGV[4])
local out = {page[1]}
for i = 2, #page[2], 2 do
    local name, fields = page[2][i], nil
    if ARGV[2] == 'torrent' then
        fields = redis.pcall('HMGET', P .. 'torrent:' .. name, 'id', 'active', 'snatches', 'up_multiplier', 'down_multiplier', 'last_action', 'made')
    else
        fields = redis.pcall('HGETALL', P .. 'user:' .. name)
    end
    -- Skips an item whose key has another type (docs/swarm.md, G7).
    if not fields.err and (ARGV[2] == 'user' or not fields[7]) then
        out[#out + 1], out[#out + 2] = name, fields
    end
end
return out
