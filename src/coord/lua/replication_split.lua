-- Ends a task of several copies or changes. The copies or changes that failed get tasks of their own.
-- ARGV: numbers of queueDB and configDB; key of the status; queue, id and token of the task; day, and life of the day's
-- counters (s); bytes and objects that were copied; then for each failed copy or change: bytes, queue, id, message,
-- delay (s). Answers 1; 0: the caller does not hold the task.
-- include part_enqueue
-- include part_end
local queue, config, status, bytes, objects = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[9]), tonumber(ARGV[10])
local prefix = 'asynq:{' .. ARGV[4] .. '}:'
local key = prefix .. 't:' .. ARGV[5]
if not holds_task(prefix, ARGV[5], ARGV[6]) then
    return 0
end
local own = redis.call('HGET', key, 'tally')
local head, kind, round = string.match(own or '', '^(%d+ %d+ (%a)) %S+ (%S+)')
redis.call('SELECT', config)
local current = head and status_round(status) == round
redis.call('SELECT', queue)
-- For a round that is over, nothing is queued.
for i = 11, current and #ARGV or 0, 5 do
    local tally = head .. ' ' .. ARGV[i] .. ' ' .. round .. ' ' .. status
    local busy = kind == 'e' and cannot_take_on or runs_for_another
    if not enqueue_beside(ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], tally, busy, ARGV[i + 4]) then -- another task does this work, and is counted
        objects = objects + 1
        bytes = bytes + ARGV[i]
    end
end
flush()
if current then
    redis.call('HSET', key, 'tally', head .. ' ' .. string.format('%.0f/%d', bytes, objects) .. ' ' .. round .. ' ' .. status)
end
return end_task(ARGV[4], ARGV[5], 'done', '', '0', 'processed', ARGV[7], ARGV[8], ARGV[6])
