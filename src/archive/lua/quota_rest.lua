-- Lets a host or a token rest. ARGV: its key, the length of the rest (ms; 0: the server did not say), the length of a
-- first rest (ms), the longest doubled rest (ms), the longest rest (ms), the server's message. Returns how long the
-- rest lasts (ms).
-- include part_quota
local key, rest = ARGV[1], tonumber(ARGV[2])
local first, doubled_max, max = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local known = redis.call('HMGET', key, 'until', 'strikes', 'struck')
local left = rest_of(known[1])
if rest == 0 and left > 0 then -- the host or token rests already: a request that was under way has met the same limit
    return left
end
if rest == 0 then
    local strikes, struck = tonumber(known[2] or 0), tonumber(known[3] or 0)
    local last = strikes > 0 and math.min(first * 2 ^ (strikes - 1), doubled_max) or 0
    if now < struck or now > struck + 3 * last then -- no limit was met for twice the length of the last rest
        strikes = 0
    end
    rest = math.min(first * 2 ^ strikes, doubled_max)
    redis.call('HSET', key, 'strikes', number(math.min(strikes + 1, 30)), 'struck', number(now))
end
rest = math.max(math.min(rest, max), left)
redis.call('HSET', key, 'until', number(now + rest), 'words', ARGV[6])
if redis.call('HEXISTS', key, 'dead') == 0 then
    redis.call('PEXPIRE', key, 172800000)
end
return rest
