-- Sets whether a torrent is active. ARGV: prefix, the torrent's key, '0' or '1'. Answers 1, or 0 when there is no such
-- torrent.
if redis.call('EXISTS', ARGV[2]) == 0 then
    return 0
end
redis.call('HSET', ARGV[2], 'active', ARGV[3])
return 1
