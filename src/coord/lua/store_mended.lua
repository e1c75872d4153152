-- All copies were begun anew. ARGV: the round that they were begun in. Answers 1, or 0 when there is another one since.
if redis.call('HGET', 'w:installation', 'round') ~= ARGV[1] then
    return 0
end
redis.call('HDEL', 'w:installation', 'back')
return 1
