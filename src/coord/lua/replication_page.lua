-- Records a page of a listing.
-- ARGV: numbers of appDB, queueDB and configDB; key of the status; key of the cursor ('': no cursor), where the page
-- began, where the next page begins ('': the listing is done), life of the cursor (s); queue, id and token of the
-- listing's task; day, and life of the day's counters (s); then for each new task: kind (c, l), bytes[/objects], key of
-- its cursor (for a listing), queue, id, message.
-- Answers 1; 0: the replication was removed or begun again; -1: the caller does not hold the task; -2: the cursor is
-- not where the page began.
-- include part_enqueue
-- include part_end
local app, queue, config, status, cursor, last = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[7]
local prefix = 'asynq:{' .. ARGV[9] .. '}:'
redis.call('SELECT', config)
local round = status_round(status)
if not round then
    return 0
end
redis.call('SELECT', queue)
if not holds_task(prefix, ARGV[10], ARGV[11]) then
    return -1
end
local own = redis.call('HGET', prefix .. 't:' .. ARGV[10], 'tally')
local of = string.match(own or '', '^%d+ %d+ %a %S+ (%S+)')
if own and of ~= round then
    return 0
end
if cursor ~= '' then
    redis.call('SELECT', app)
    if (redis.call('GET', cursor) or '') ~= ARGV[6] then
        return -2
    end
    if last ~= '' then
        redis.call('SETEX', cursor, ARGV[8], last)
    else
        redis.call('DEL', cursor)
    end
    redis.call('SELECT', queue)
end
local objects, bytes, begun = 0, 0, {}
for i = 14, #ARGV, 6 do
    local tally = config .. ' ' .. queue .. ' ' .. ARGV[i] .. ' ' .. ARGV[i + 1] .. ' ' .. round .. ' ' .. status
    if enqueue_beside(ARGV[i + 3], ARGV[i + 4], ARGV[i + 5], tally, runs_for_another) then
        if ARGV[i] == 'c' then
            local size, count = tally_size(ARGV[i + 1])
            objects = objects + count
            bytes = bytes + size
        else
            begun[#begun + 1] = ARGV[i + 2]
        end
    end
end
flush()
-- A new listing starts at the first key, even if an earlier replication has left a cursor.
redis.call('SELECT', app)
for _, key in ipairs(begun) do
    redis.call('DEL', key)
end
redis.call('SELECT', config)
if objects > 0 then
    redis.call('HINCRBY', status, 'obj_listed', objects)
    redis.call('HINCRBY', status, 'bytes_listed', string.format('%.0f', bytes))
end
if #begun > 0 then
    redis.call('HINCRBY', status, 'listings', #begun)
end
redis.call('SELECT', queue)
if last == '' then
    end_task(ARGV[9], ARGV[10], 'done', '', '0', 'processed', ARGV[12], ARGV[13], ARGV[11])
end
return 1
