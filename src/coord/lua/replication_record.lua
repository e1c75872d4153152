-- Records changes (R3). ARGV: databases of vectors, of the queue, of policies; epoch; id of the intent ('': none); key of the log's
-- number ('': none) and its last row; how many replications, how many sources; for each replication: key of its status, tally;
-- sources (<storage>:<bucket>); then for each change: row (0: none), key of the vector, field, '1' for a whole object (V5), how many
-- tasks, for each: replication (from 1), queue, id, message.
-- Answers 1, or 0 when the replications of these sources are not those of the epoch any more.
-- include part_enqueue
-- include part_remove
-- include part_bump
local app, queue, config, intent, log = ARGV[1], ARGV[2], ARGV[3], ARGV[5], ARGV[6]
local replications, sources = tonumber(ARGV[8]), tonumber(ARGV[9])
local epoch = tonumber(ARGV[4])
redis.call('SELECT', config)
local newest = tonumber(redis.call('GET', 'w:epoch') or '0')
if newest < epoch or newest > epoch + 86400000 then
    return 0
end
for i = 10 + 2 * replications, 9 + 2 * replications + sources do
    if tonumber(redis.call('ZSCORE', 'w:epochs', 's:' .. ARGV[i]) or '0') > epoch then
        return 0
    end
end
-- One that is gone without a new epoch: the database was flushed.
for i = 1, replications do
    local created = redis.call('HGET', ARGV[8 + 2 * i], 'created_at')
    if not created or not string.find(ARGV[9 + 2 * i], ' ' .. created .. ' ', 1, true) then
        return 0
    end
end
redis.call('SELECT', app)
local recorded = log ~= '' and tonumber(redis.call('GET', log) or '0') or 0
local bumped, tasks = {}, {}
-- Once for each thing, however often it changed.
local at = 10 + 2 * replications + sources
while at <= #ARGV do
    local row, count = tonumber(ARGV[at]), tonumber(ARGV[at + 4])
    if row == 0 or row > recorded then
        local both = ARGV[at + 1] .. '\n' .. ARGV[at + 2]
        if not bumped[both] then
            bumped[both] = bump(ARGV[at + 1], ARGV[at + 2])
            if ARGV[at + 3] == '1' then
                bump_known(ARGV[at + 1] .. ':t', ARGV[at + 2])
                bump_known(ARGV[at + 1] .. ':a', ARGV[at + 2])
            end
        end
        for i = 0, count - 1 do
            tasks[#tasks + 1] = at + 5 + 4 * i
        end
    end
    at = at + 5 + 4 * count
end
if log ~= '' and tonumber(ARGV[7]) > recorded then
    redis.call('SET', log, ARGV[7])
end
redis.call('SELECT', queue)
if intent ~= '' then
    local state = redis.call('HGET', 'asynq:{intents}:t:' .. intent, 'state')
    if state and state ~= 'active' then
        remove_task('asynq:{intents}:', intent, state)
    end
end
-- A task that waits in line sees the change when it runs, and takes it on. One that runs may have looked already, and one that
-- failed may wait for long: the change gets one of its own, up to a few.
local function cannot_take_on(state, n)
    return state == 'active' or (state == 'retry' or state == 'scheduled') and n < 4
end
local events = {}
for _, t in ipairs(tasks) do
    local replication = tonumber(ARGV[t])
    if enqueue_beside(ARGV[t + 1], ARGV[t + 2], ARGV[t + 3], ARGV[9 + 2 * replication], cannot_take_on) then
        events[replication] = (events[replication] or 0) + 1
    end
end
flush()
redis.call('SELECT', config)
for i = 1, replications do
    if events[i] then
        redis.call('HINCRBY', ARGV[8 + 2 * i], 'events', events[i])
        redis.call('HSET', ARGV[8 + 2 * i], 'last_emitted_at', rfc3339())
    end
end
return 1
