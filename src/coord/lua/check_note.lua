-- Writes down what went wrong with a check. ARGV: id, state, round, error, '1' when the check has failed for good, piece of the walk.
-- Answers 1, or 0 when the round or the piece is over.
-- include part_check
if not check_walks(ARGV[1], ARGV[2], ARGV[3], ARGV[6]) then
    return 0
end
redis.call('HSET', check_keys(ARGV[1]), 'error', ARGV[4])
if ARGV[5] == '1' then
    redis.call('HSET', check_keys(ARGV[1]), 'state', 'failed')
end
return 1
