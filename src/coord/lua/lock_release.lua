-- Releases locks. ARGV: pairs of key and token. A lock that has another token stays. Answers how many locks were
-- released.
local released = 0
for i = 1, #ARGV, 2 do
    if redis.call('GET', ARGV[i]) == ARGV[i + 1] then
        released = released + redis.call('DEL', ARGV[i])
    end
end
return released
