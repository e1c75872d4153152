-- Adds one snatch (a completed download) to a user and to a torrent. ARGV: prefix, the keys of the user and of the torrent.
-- Answers both new numbers, or nil when one of the two does not exist.
if redis.call('EXISTS', ARGV[2], ARGV[3]) ~= 2 then
    return false
end
return {redis.call('HINCRBY', ARGV[2], 'snatches', 1), redis.call('HINCRBY', ARGV[3], 'snatches', 1)}
