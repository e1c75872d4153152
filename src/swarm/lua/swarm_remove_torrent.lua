-- Removes a torrent with its peers. ARGV: prefix, channel, info hash, '1' if an operator removes it: then the torrent of an
-- object is withdrawn and cannot be offered again (docs/torrents.md). Answers 1, or 0 when there was no such torrent.
-- include part_drop
local key = P .. 'torrent:' .. ARGV[3]
local id = call('HGET', key, 'id')
if not id then
    return 0
end
local hex = string.gsub(ARGV[3], '.', function(c)
    return string.format('%02x', string.byte(c))
end)
if ARGV[4] == '1' and call('EXISTS', P .. 'w:torrents_by_info_hash:' .. hex) == 1 then
    call('SADD', P .. 'w:torrents_withdrawn', ARGV[3])
end
local tid, used = base36(id), {}
for _, set in ipairs({'seeders:', 'leechers:'}) do
    local members = call('SMEMBERS', P .. set .. tid)
    for i = 1, #members, 500 do
        local last = math.min(i + 499, #members)
        call('ZREM', P .. 'expiry', unpack(members, i, last))
        for j = i, last do
            local uid = parts(members[j])
            if uid ~= '0' then
                call('SREM', P .. 'userpeers:' .. uid, members[j])
                if set == 'leechers:' then
                    used[uid] = (used[uid] or 0) + 1
                end
            end
            members[j] = P .. members[j]
        end
        call('DEL', unpack(members, i, last))
    end
end
for uid, n in pairs(used) do
    slots(uid, -n)
end
call('DEL', key, P .. 'seeders:' .. tid, P .. 'leechers:' .. tid, P .. 'addrs:' .. tid, P .. 'v6:' .. tid, P .. 'paused:' .. tid)
call('HDEL', P .. 'torrent_ids', tid)
call('PUBLISH', ARGV[2], 'torrent ' .. ARGV[3])
return 1
