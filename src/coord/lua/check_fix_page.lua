-- Queues the repairs for one page of keys of a fix.
-- ARGV: numbers of appDB and queueDB; the check's id and round; the cursor at which the page begins, and the cursor
-- behind it ('': this is the last page); the piece of the walk; queue, id and message of the task that continues the
-- walk ('': the present task does); then for each repair its name, and queue, id and message of its task.
-- Answers 1; 0: the round or the piece is over; -2: the check's cursor is not where the page begins.
-- include part_check
local app, queue, id = ARGV[1], ARGV[2], ARGV[3]
redis.call('SELECT', app)
local hash, _, _, _, open = check_keys(id)
if not check_walks(id, 'fixing', ARGV[4], ARGV[7]) then
    return 0
end
if not check_move(id, ARGV[5], ARGV[6]) then
    return -2
end
local added = 0
for i = 11, #ARGV, 4 do
    added = added + redis.call('SADD', open, ARGV[i])
end
redis.call('HINCRBY', hash, 'fix_queued', added)
redis.call('HDEL', hash, 'error')
if ARGV[6] == '' then
    redis.call('HSET', hash, 'fix_listed', '1')
end
check_touch(id)
redis.call('SELECT', queue)
for i = 11, #ARGV, 4 do
    enqueue(ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], '0', '', '0', check_object_tally(app, queue, ARGV[4], id, ARGV[i]))
end
flush()
redis.call('SELECT', app)
if ARGV[6] ~= '' and ARGV[8] ~= '' then
    check_hand_over(app, queue, ARGV[4], id, ARGV[7], {ARGV[8], ARGV[9], ARGV[10]})
end
check_fix_ended(id, app, queue)
return 1
