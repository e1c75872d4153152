-- One snatch more. ARGV: prefix, keys of user and torrent. Answers both numbers, or nil when either is missing.
if redis.call('EXISTS', ARGV[2], ARGV[3]) ~= 2 then
    return false
end
return {redis.call('HINCRBY', ARGV[2], 'snatches', 1), redis.call('HINCRBY', ARGV[3], 'snatches', 1)}
