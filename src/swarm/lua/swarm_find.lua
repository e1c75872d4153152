-- A torrent with its peers as of one moment. ARGV: prefix, info hash. Answers its fields and the entries of its peers; nil: there is none.
-- include part_keys
local torrent = redis.call('HGETALL', P .. 'torrent:' .. ARGV[2])
local id
for i = 1, #torrent, 2 do
    if torrent[i] == 'id' then
        id = torrent[i + 1]
        break
    end
end
if not id then
    return false
end
return {torrent, redis.call('HGETALL', P .. 'addrs:' .. base36(id))}
