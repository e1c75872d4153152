-- Approves a client, or no longer. ARGV: prefix, channel, SADD or SREM, client.
redis.call(ARGV[3], ARGV[1] .. 'whitelist', ARGV[4])
redis.call('PUBLISH', ARGV[2], 'client')
return 1
