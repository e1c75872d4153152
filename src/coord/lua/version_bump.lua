-- One more than the highest number of the vector (V1). ARGV: key, field. Answers it.
local numbers = redis.call('HVALS', ARGV[1])
local highest = 0
for i = 1, #numbers do
    highest = math.max(highest, tonumber(numbers[i]))
end
redis.call('HSET', ARGV[1], ARGV[2], highest + 1)
redis.call('PERSIST', ARGV[1])
return highest + 1
