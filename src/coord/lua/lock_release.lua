-- Releases locks. ARGV: pairs of key and token. Answers how many had their token.
local released = 0
for i = 1, #ARGV, 2 do
    if redis.call('GET', ARGV[i]) == ARGV[i + 1] then
        released = released + redis.call('DEL', ARGV[i])
    end
end
return released
