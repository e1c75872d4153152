-- Renews locks. ARGV: time to live (ms), then pairs of key and token. Answers the keys of locks that do not have their
-- token any more.
local lost = {}
for i = 2, #ARGV, 2 do
    if redis.call('GET', ARGV[i]) == ARGV[i + 1] then
        redis.call('PEXPIRE', ARGV[i], ARGV[1])
    else
        lost[#lost + 1] = ARGV[i]
    end
end
return lost
