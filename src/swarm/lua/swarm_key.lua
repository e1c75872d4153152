-- Answers the store's key for connection ids. ARGV: prefix, a key that the store keeps if it has none.
redis.call('SET', ARGV[1] .. 'connid_key', ARGV[2], 'NX')
return redis.call('GET', ARGV[1] .. 'connid_key')
