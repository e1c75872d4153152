-- Takes locks. ARGV: time to live (ms), then pairs of key and token. Answers for each lock 1 if the caller has it now,
-- 0 if somebody else has it. A lock that would live much longer than the time to live was taken before the store's
-- clock went back, and was not renewed since. Such a lock is taken over.
local taken = {}
local too_long = 2 * ARGV[1] + 60000
for i = 2, #ARGV, 2 do
    local mine = redis.call('SET', ARGV[i], ARGV[i + 1], 'NX', 'PX', ARGV[1]) or redis.call('GET', ARGV[i]) == ARGV[i + 1]
    if not mine and redis.call('PTTL', ARGV[i]) > too_long then
        mine = redis.call('SET', ARGV[i], ARGV[i + 1], 'PX', ARGV[1])
    end
    taken[#taken + 1] = mine and 1 or 0
end
return taken
