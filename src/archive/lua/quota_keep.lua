-- Extends seats. ARGV: how long a seat lasts (ms), then pairs of key and id.
-- include part_quota
local lasts = tonumber(ARGV[1])
for i = 2, #ARGV, 2 do
    redis.call('ZADD', ARGV[i], number(now + lasts), ARGV[i + 1])
    redis.call('PEXPIRE', ARGV[i], number(lasts))
end
return 1
