-- A tally says what a task counts for. It is the field `tally` of the task's hash: '<number of configDB> <number of
-- queueDB> <kind> <bytes>[/<objects>] <round> <key of the replication's status>'. Kinds: e (event), c (copy; of one
-- object if there is no <objects>), l (listing). The round is the time at which the replication was made or its copy
-- was begun again: a task of another round counts for nothing. Tasks of checks have the kinds w (walk) and o (repair);
-- see part_check_end.
-- include part_time
-- include part_check_end
local function tally_same(a, b)
    local kind_a, rest_a = string.match(a, '^(%d+ %d+ %a) %S+ (.+)$')
    local kind_b, rest_b = string.match(b, '^(%d+ %d+ %a) %S+ (.+)$')
    return kind_a == kind_b and rest_a == rest_b
end
-- Answers the bytes, as text, and the number of objects in the size of a tally.
local function tally_size(size)
    local bytes, objects = string.match(size, '^(%d+)/?(%d*)$')
    return bytes, tonumber(objects) or 1
end
-- Answers the round of a replication; nil: the replication was removed. configDB must be selected.
local function status_round(key)
    local row = redis.call('HMGET', key, 'created_at', 'resynced_at')
    return row[1] and (row[2] or row[1])
end
-- Records the time at which everything was listed and all copies have ended. configDB must be selected.
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
-- Counts what happened to a task: done; failed (for good); again (a failed task is run once more); gone (the task was
-- deleted); forgotten (it was deleted after it had failed for good). queueDB must be selected.
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
