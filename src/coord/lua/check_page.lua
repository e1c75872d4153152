-- Records the results for one page of keys that were compared.
-- ARGV: numbers of appDB and queueDB; the check's id and round; the cursor at which the page begins, and the cursor
-- behind it ('': this is the last page); number of keys, differences and bytes of the page; most differences that the
-- report keeps; '1' if versions were compared; about how many keys there are in all; the piece of the walk; queue, id
-- and message of the task that continues the walk ('': the present task does); then the differences for the report.
-- Answers 1; 0: the round or the piece is over; -2: the check's cursor is not where the page begins.
-- include part_check
redis.call('SELECT', ARGV[1])
local id, after, last = ARGV[3], ARGV[5], ARGV[6]
local hash, _, _, list = check_keys(id)
if not check_walks(id, 'checking', ARGV[4], ARGV[13]) then
    return 0
end
if not check_move(id, after, last) then
    return -2
end
if after == '' then
    redis.call('DEL', list)
    redis.call('HSET', hash, 'keys', '0', 'differences', '0', 'bytes', '0', 'versioned', ARGV[11], 'total', ARGV[12])
end
redis.call('HINCRBY', hash, 'keys', ARGV[7])
redis.call('HINCRBY', hash, 'differences', ARGV[8])
redis.call('HINCRBY', hash, 'bytes', ARGV[9])
local room = ARGV[10] - redis.call('LLEN', list)
local final = math.min(#ARGV, 16 + room)
for i = 17, final, 500 do
    redis.call('RPUSH', list, unpack(ARGV, i, math.min(i + 499, final)))
end
redis.call('HSET', hash, 'kept', redis.call('LLEN', list))
redis.call('HDEL', hash, 'error')
if last == '' then
    redis.call('HSET', hash, 'state', 'ready', 'done_at', rfc3339())
end
check_touch(id)
if last ~= '' and ARGV[14] ~= '' then
    check_hand_over(ARGV[1], ARGV[2], ARGV[4], id, ARGV[13], {ARGV[14], ARGV[15], ARGV[16]})
end
return 1
