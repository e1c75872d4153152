-- ARGV: key, token. Answers 1, or 0 when it is not held with this token.
if redis.call('GET', ARGV[1]) == ARGV[2] then
    return redis.call('DEL', ARGV[1])
end
return 0
