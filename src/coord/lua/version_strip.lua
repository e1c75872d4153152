-- Removes the field of one place from some vectors of a bucket. ARGV: pattern of the vectors' keys, field, cursor, how
-- many keys to look at.
-- Answers the next cursor; '0': all keys were looked at.
local page = redis.call('SCAN', ARGV[3], 'MATCH', ARGV[1], 'COUNT', ARGV[4], 'TYPE', 'hash')
for i = 1, #page[2] do
    redis.call('HDEL', page[2][i], ARGV[2])
end
return page[1]
