-- Takes tokens from a bucket that fills with time.
-- ARGV: key of the bucket, number of tokens wanted, tokens added each second, most tokens that the bucket holds.
-- Answers 0 if the tokens were taken, else in how many ms there will be enough. A caller that wants more tokens than
-- the bucket holds gets them when the bucket is full, which leaves a debt.
local key, wanted, rate, size = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local state = redis.call('HMGET', key, 'level', 'at')
local level = tonumber(state[1] or size)
local at = tonumber(state[2] or now)
if now > at then
    level = math.min(size, level + (now - at) * rate / 1000)
elseif now < at then -- the clock went back: the bucket fills from now on
    redis.call('HSET', key, 'at', string.format('%d', now))
end
local needed = math.min(wanted, size)
if level < needed then
    return math.ceil((needed - level) * 1000 / rate)
end
redis.call('HSET', key, 'level', string.format('%.3f', level - wanted), 'at', string.format('%d', now))
redis.call('PEXPIRE', key, math.ceil((size - level + wanted) * 1000 / rate) + 1000)
return 0
