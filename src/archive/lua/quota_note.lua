-- Stores the quota that an answer has reported for a token. ARGV: key of the token, limit, remaining requests, time
-- until the forge counts anew (ms), how much longer than that time the token rests (ms).
-- include part_quota
local key, remaining, reset = ARGV[1], tonumber(ARGV[3]), now + tonumber(ARGV[4])
redis.call('HSET', key, 'limit', ARGV[2], 'remaining', ARGV[3], 'reset', number(reset))
if remaining <= 0 and rest_of(redis.call('HGET', key, 'until')) < reset + ARGV[5] - now then
    redis.call('HSET', key, 'until', number(reset + ARGV[5]), 'words', 'no request is left')
end
if redis.call('HEXISTS', key, 'dead') == 0 then
    redis.call('PEXPIRE', key, 172800000)
end
return 1
