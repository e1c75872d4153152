-- The key of connection ids. ARGV: prefix, one to take when there is none.
redis.call('SET', ARGV[1] .. 'connid_key', ARGV[2], 'NX')
return redis.call('GET', ARGV[1] .. 'connid_key')
