-- Torrents that were not added by an operator, but made because somebody announced them (field `made`).
-- include part_keys
-- Removes such a torrent when it has no peers left.
local function unmake(tid)
    if call('SCARD', P .. 'seeders:' .. tid) + call('SCARD', P .. 'leechers:' .. tid) > 0 then
        return
    end
    local hash = call('HGET', P .. 'torrent_ids', tid)
    if hash and call('HEXISTS', P .. 'torrent:' .. hash, 'made') == 1 then
        call('DEL', P .. 'torrent:' .. hash)
        call('HDEL', P .. 'torrent_ids', tid)
    end
end
