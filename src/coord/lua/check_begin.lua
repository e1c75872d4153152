-- Begins a check (docs/diff.md). The mode is new (a new check), again (the same check once more) or fix (repairs of the
-- differences).
-- ARGV: numbers of appDB and queueDB; the check's id; mode; round; queue, id and message of the first task; for a fix:
-- index of the source, and the task of the check that follows the fix, as '<round> <queue> <id> <message>'; for a new
-- check: the number of fields, the fields and values, then the locations.
-- Answers 1; 0: there is no such check; -1: the check is running.
-- include part_check
local app, queue, id, mode, round = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
redis.call('SELECT', app)
local hash, locations, cursor, list, open = check_keys(id)
local state = redis.call('HGET', hash, 'state')
if mode ~= 'new' and not state then
    return 0
end
if mode ~= 'again' and (state == 'checking' or state == 'fixing') then
    return -1
end
if mode == 'new' then
    redis.call('DEL', hash, locations, list)
    local fields = tonumber(ARGV[11])
    for i = 12, 11 + 2 * fields, 2 do
        redis.call('HSET', hash, ARGV[i], ARGV[i + 1])
    end
    for i = 12 + 2 * fields, #ARGV do
        redis.call('SADD', locations, ARGV[i])
    end
    redis.call('HSET', hash, 'created_at', rfc3339())
    redis.call('SADD', 'w:ccv:id', id)
end
if mode == 'fix' then
    redis.call('DEL', cursor, open)
    redis.call('HSET', hash, 'state', 'fixing', 'round', round, 'source', ARGV[9], 'fix_queued', '0', 'fix_done', '0', 'fix_failed', '0',
        'fix_listed', '0', 'next', ARGV[10])
    redis.call('HDEL', hash, 'error', 'fixed_at', 'piece')
else
    check_begin(id, round)
end
check_touch(id)
redis.call('SELECT', queue)
enqueue(ARGV[6], ARGV[7], ARGV[8], '0', '', '0', check_walk_tally(app, queue, round, id, '0'))
flush()
return 1
