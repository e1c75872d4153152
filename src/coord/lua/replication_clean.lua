-- Deletes cursors of a replication's listings. ARGV: pattern of their keys, key of the first cursor, cursor of the
-- scan, how many keys to look at.
-- Behind the first cursor's key, a key of this replication has a prefix that ends with '/', and no ':'. All other keys
-- belong to a replication to another bucket, and stay.
-- Answers the next cursor of the scan; '0': all keys were looked at.
local page = redis.call('SCAN', ARGV[3], 'MATCH', ARGV[1], 'COUNT', ARGV[4], 'TYPE', 'string')
for i = 1, #page[2] do
    local rest = string.sub(page[2][i], #ARGV[2] + 2)
    if string.sub(rest, -1) == '/' and not string.find(rest, ':', 1, true) then
        redis.call('DEL', page[2][i])
    end
end
redis.call('DEL', ARGV[2])
return page[1]
