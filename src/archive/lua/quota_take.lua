-- Asks for permission to send a request to a forge. ARGV: key of the host, key of the seats, number of seats, id of the
-- seat, how long a seat lasts (ms), keys of the tokens. Returns the token to use (0: the caller has named none), how
-- long to wait for a seat (ms), how long the host or all tokens rest (ms), and 1 if every token is dead. A seat is
-- taken only if the last three are 0.
-- include part_quota
local seats, most, id, lasts = ARGV[2], tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])
local rest = rest_of(redis.call('HGET', ARGV[1], 'until'))
if rest > 0 then
    return {0, 0, rest, 0}
end
local best, best_left, soonest, alive = 0, -1, 0, 0
for i = 6, #ARGV do
    local token = redis.call('HMGET', ARGV[i], 'until', 'dead', 'remaining', 'reset')
    if not token[2] then
        alive = alive + 1
        local left, reset = tonumber(token[3] or 1000000000), rest_of(token[4])
        if reset == 0 then -- the time of the reset has passed: the forge counts anew
            left = 1000000000
        end
        rest = rest_of(token[1])
        if left <= 0 then
            rest = math.max(rest, reset)
        end
        if rest > 0 then
            soonest = soonest == 0 and rest or math.min(soonest, rest)
        elseif left > best_left then
            best, best_left = i - 5, left
        end
    end
end
if #ARGV > 5 and best == 0 then
    return {0, 0, soonest, alive == 0 and 1 or 0}
end
redis.call('ZREMRANGEBYSCORE', seats, '-inf', number(now))
redis.call('ZREMRANGEBYSCORE', seats, '(' .. number(now + lasts), '+inf') -- taken before the clock went back
if redis.call('ZCARD', seats) >= most then
    return {0, 100, 0, 0}
end
redis.call('ZADD', seats, number(now + lasts), id)
redis.call('PEXPIRE', seats, number(lasts))
if best_left < 1000000000 and best > 0 then -- counted before the answer arrives, so that many requests at once stay below the limit
    redis.call('HINCRBY', ARGV[best + 5], 'remaining', -1)
end
return {best, 0, 0, 0}
