-- What went wrong with a check. ARGV: id, state, round, error, whether it ends.
-- Answers 1, or 0 when the round is over.
-- include part_check
if not check_held(ARGV[1], ARGV[2], ARGV[3]) then
    return 0
end
redis.call('HSET', check_keys(ARGV[1]), 'error', ARGV[4])
if ARGV[5] == '1' then
    redis.call('HSET', check_keys(ARGV[1]), 'state', 'failed')
end
return 1
