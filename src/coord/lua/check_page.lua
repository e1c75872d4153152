-- Writes down the results for some keys that were compared. ARGV: numbers of appDB and queueDB; id, round; where the page begins, where to
-- go on ('': this was the last page); how many keys, differences and bytes; how many differences the report keeps; '1' when versions were
-- compared; how many keys there are, roughly; piece of the walk; queue, id and message of the task that goes on ('': this task does);
-- then the differences to keep.
-- Answers 1, 0 when the round or the piece is over, -2 when the cursor is elsewhere.
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
