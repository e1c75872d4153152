-- What a task counts for: the field `tally` of its hash, '<number of configDB> <of queueDB> <kind> <bytes>[/<objects>] <round> <key of the
-- replication's status>'. Kinds: e (event), c (copy, of one object if it does not say how many), l (listing). The round is the time at which
-- the replication was made or its copy begun again: a task of another round counts for nothing. Tasks of checks have the kinds w (walk)
-- and o (repair); see part_check_end.
-- include part_time
-- include part_check_end
local function tally_same(a, b)
    local kind_a, rest_a = string.match(a, '^(%d+ %d+ %a) %S+ (.+)$')
    local kind_b, rest_b = string.match(b, '^(%d+ %d+ %a) %S+ (.+)$')
    return kind_a == kind_b and rest_a == rest_b
end
-- The bytes, as text, and the number of objects.
local function tally_size(size)
    local bytes, objects = string.match(size, '^(%d+)/?(%d*)$')
    return bytes, tonumber(objects) or 1
end
-- The round of a replication, in configDB. nil: the replication is gone.
local function status_round(key)
    local row = redis.call('HMGET', key, 'created_at', 'resynced_at')
    return row[1] and (row[2] or row[1])
end
-- In configDB: notes the time at which everything was listed and all of it has ended.
local function status_complete(key)
    local row = redis.call('HMGET', key, 'listings', 'listing_started', 'obj_listed', 'obj_done', 'obj_failed')
    if row[1] ~= '0' then
        return
    end
    if row[2] ~= '1' then
        redis.call('HSET', key, 'listing_started', '1')
    end
    if row[4] + row[5] >= tonumber(row[3]) then
        redis.call('HSETNX', key, 'init_done_at', rfc3339())
    end
end
local tally_fields = {
    e = {done = 'events_done', gone = 'events_done', forgotten = 'events_done'},
    c = {done = 'obj_done', failed = 'obj_failed', gone = 'obj_failed', again = 'obj_failed'},
    l = {done = 'listings'},
}
-- In queueDB. What happened to the task: done; failed (for good); again (a failed task is run once more); gone (deleted); forgotten (deleted
-- after it had failed for good).
local function tally_count(tally, what)
    local config, queue, kind, size, round, key = string.match(tally, '^(%d+) (%d+) (%a) (%S+) (%S+) (.+)$')
    if check_lost[kind] then
        if check_why[what] then
            redis.call('SELECT', config)
            check_lost[kind](config, queue, round, key, check_why[what])
            redis.call('SELECT', queue)
        end
        return
    end
    local bytes, objects = tally_size(size)
    local field = tally_fields[kind][what]
    if not field then
        return
    end
    redis.call('SELECT', config)
    if status_round(key) == round then
        redis.call('HINCRBY', key, field, (kind == 'l' or what == 'again') and -objects or objects)
        if what == 'done' then
            redis.call('HSET', key, 'last_processed_at', rfc3339())
        end
        if kind == 'c' and what == 'done' then
            redis.call('HINCRBY', key, 'bytes_done', bytes)
        end
        if kind ~= 'e' then
            status_complete(key)
        end
    end
    redis.call('SELECT', queue)
end
