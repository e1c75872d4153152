-- Records that all copies were begun again. ARGV: the round in which they were. Answers 1; 0: there is a newer round.
if redis.call('HGET', 'w:installation', 'round') ~= ARGV[1] then
    return 0
end
redis.call('HDEL', 'w:installation', 'back')
return 1
