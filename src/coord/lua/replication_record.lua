-- Records changes (docs/replication.md, R3).
-- ARGV: numbers of appDB, queueDB and configDB; epoch; how many intents; key that holds the number of the last recorded
-- row of the outbox ('': none), and the last row of this record; how many replications, how many sources; for each
-- replication: key of its status, tally, field of its destination in vectors; the sources (<storage>:<bucket>); ids of
-- the intents; then for each change: its row (0: none), key of the vector ('': none), field, kind, how many tasks, and
-- for each task: replication (counted from 1), queue, id, message, number of changes.
-- The kind is 'w' for a whole object, 'b' for tags or ACL of an object (V5), else ''. It has a '~' before it if the
-- change was found late (R4).
-- Answers 1; with KEYS (part_seen) the step's number instead of 1; 0: the replications of these sources have changed
-- since the epoch.
-- include part_enqueue
-- include part_seen
-- include part_remove
-- include part_bump
local app, queue, config, intents, log = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[5]), ARGV[6]
local replications, sources = tonumber(ARGV[8]), tonumber(ARGV[9])
local epoch = tonumber(ARGV[4])
redis.call('SELECT', config)
local newest = tonumber(redis.call('GET', 'w:epoch') or '0')
if newest < epoch or newest > epoch + 86400000 then
    return 0
end
for i = 10 + 3 * replications, 9 + 3 * replications + sources do
    if tonumber(redis.call('ZSCORE', 'w:epochs', 's:' .. ARGV[i]) or '0') > epoch then
        return 0
    end
end
-- If a replication was removed without a new epoch, the database was flushed.
local tallies = {}
for i = 1, replications do
    local row = redis.call('HMGET', ARGV[7 + 3 * i], 'created_at', 'resynced_at')
    if not row[1] or not string.find(ARGV[8 + 3 * i], ' ' .. row[1] .. ' ', 1, true) then
        return 0
    end
    local head, tail = string.match(ARGV[8 + 3 * i], '^(%d+ %d+ %a %d+ )%S+( .+)$')
    tallies[i] = head .. (row[2] or row[1]) .. tail
end
local others, few = {}, replications > 0 and replications <= 4
for i = 1, few and replications or 0 do
    others[i] = ARGV[9 + 3 * i]
end
redis.call('SELECT', queue)
local lost = seen()
if lost then
    return lost
end
redis.call('SELECT', app)
local recorded = log ~= '' and tonumber(redis.call('GET', log) or '0') or 0
local bumped, tasks = {}, {}
local how = {[''] = bump, w = bump_whole, b = bump_beside, ['~'] = bump, ['~w'] = bump_whole, ['~b'] = bump_beside}
-- Whether another storage has a higher number, because the object was written there since.
local function is_overtaken(key, field)
    local own = tonumber(redis.call('HGET', key, field) or '0')
    for _, number in ipairs(redis.call('HVALS', key)) do
        if tonumber(number) > own then
            return true
        end
    end
    return false
end
-- The vector of each thing is raised once, however often the thing has changed.
local at = 10 + 3 * replications + sources + intents
while at <= #ARGV do
    local row, key, field, count = tonumber(ARGV[at]), ARGV[at + 1], ARGV[at + 2], tonumber(ARGV[at + 4])
    if row == 0 or row > recorded then
        local there = bumped[field] or {}
        bumped[field] = there
        if key ~= '' and not there[key] then
            local kind = ARGV[at + 3]
            if string.byte(kind) ~= 126 or not is_overtaken(key, field) then -- 126 is '~'
                there[key] = true
                how[kind](key, field, few and others)
            end
        end
        for i = 0, count - 1 do
            tasks[#tasks + 1] = at + 5 + 5 * i
        end
    end
    at = at + 5 + 5 * count
end
if log ~= '' and tonumber(ARGV[7]) > recorded then
    redis.call('SET', log, ARGV[7])
end
redis.call('SELECT', queue)
for i = 10 + 3 * replications + sources, 9 + 3 * replications + sources + intents do
    local state = redis.call('HGET', 'asynq:{intents}:t:' .. ARGV[i], 'state')
    if state and state ~= 'active' then
        remove_task('asynq:{intents}:', ARGV[i], state)
    end
end
local events = {}
for _, t in ipairs(tasks) do
    local replication, changes = tonumber(ARGV[t]), tonumber(ARGV[t + 4])
    local tally = tallies[replication]
    if changes > 1 then
        tally = string.gsub(tally, '^(%d+ %d+ e) 0 ', '%1 0/' .. changes .. ' ')
    end
    if enqueue_beside(ARGV[t + 1], ARGV[t + 2], ARGV[t + 3], tally, cannot_take_on) then
        events[replication] = (events[replication] or 0) + changes
    end
end
flush()
redis.call('SELECT', config)
for i = 1, replications do
    if events[i] then
        redis.call('HINCRBY', ARGV[7 + 3 * i], 'events', events[i])
        redis.call('HSET', ARGV[7 + 3 * i], 'last_emitted_at', rfc3339())
    end
end
return seen_number or 1
