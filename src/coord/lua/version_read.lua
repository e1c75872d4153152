-- Reads many vectors at one moment. ARGV: their keys. Answers for each the fields and numbers, as HGETALL does.
local out = {}
for i = 1, #ARGV do
    out[i] = redis.call('HGETALL', ARGV[i])
end
return out
