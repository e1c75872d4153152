-- Answers a scrape. ARGV: prefix, info hashes. Answers five numbers for each hash: 1 if the torrent is known, else 0;
-- seeders, leechers, snatches, paused leechers.
-- include part_keys
local out = {}
for i = 2, #ARGV do
    local torrent = call('HMGET', P .. 'torrent:' .. ARGV[i], 'id', 'snatches')
    local at = #out
    if torrent[1] then
        local tid = base36(torrent[1])
        out[at + 1], out[at + 2], out[at + 3], out[at + 4], out[at + 5] = 1, call('SCARD', P .. 'seeders:' .. tid),
            call('SCARD', P .. 'leechers:' .. tid), tonumber(torrent[2]), call('SCARD', P .. 'paused:' .. tid)
    else
        out[at + 1], out[at + 2], out[at + 3], out[at + 4], out[at + 5] = 0, 0, 0, 0, 0
    end
end
return out
