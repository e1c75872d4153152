-- Marks a token as dead, or as alive again. ARGV: key of the token, the server's message (empty: the token is alive).
-- include part_quota
if ARGV[2] == '' then
    return redis.call('HDEL', ARGV[1], 'dead', 'words', 'until')
end
redis.call('HSET', ARGV[1], 'dead', number(now), 'words', ARGV[2])
redis.call('PERSIST', ARGV[1])
return 1
