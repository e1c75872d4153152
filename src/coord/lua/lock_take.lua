-- ARGV: key, token, life (ms). Answers 1, or 0 when somebody has it.
if redis.call('SET', ARGV[1], ARGV[2], 'NX', 'PX', ARGV[3]) then
    return 1
end
return redis.call('GET', ARGV[1]) == ARGV[2] and 1 or 0
