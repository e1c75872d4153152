-- Records an error of a check.
-- ARGV: the check's id, state and round; the error; '1' if the check has failed for good; the piece of the walk.
-- Answers 1; 0: the check has another state, round or piece by now.
-- include part_check
if not check_walks(ARGV[1], ARGV[2], ARGV[3], ARGV[6]) then
    return 0
end
redis.call('HSET', check_keys(ARGV[1]), 'error', ARGV[4])
if ARGV[5] == '1' then
    redis.call('HSET', check_keys(ARGV[1]), 'state', 'failed')
end
return 1
