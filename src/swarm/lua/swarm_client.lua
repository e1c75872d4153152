-- Adds a client to the approved clients, or removes it. ARGV: prefix, channel, 'SADD' or 'SREM', the client.
redis.call(ARGV[3], ARGV[1] .. 'whitelist', ARGV[4])
redis.call('PUBLISH', ARGV[2], 'client')
return 1
