-- Records that a repair of a fix has ended.
-- ARGV: numbers of appDB and queueDB; the check's id and round; name of the repair; its error ('': the repair
-- succeeded).
-- Answers 1; 0: the round is over.
-- include part_check
local app, queue, id = ARGV[1], ARGV[2], ARGV[3]
redis.call('SELECT', app)
local hash, _, _, _, open = check_keys(id)
if not check_held(id, 'fixing', ARGV[4]) then
    return 0
end
if redis.call('SREM', open, ARGV[5]) == 1 then
    redis.call('HINCRBY', hash, ARGV[6] == '' and 'fix_done' or 'fix_failed', 1)
    if ARGV[6] ~= '' then
        redis.call('HSET', hash, 'error', ARGV[6])
    end
end
check_fix_ended(id, app, queue)
return 1
