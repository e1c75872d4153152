-- Functions for changes of policies. configDB must be selected.
-- policy_changed() ends every change of a policy: it raises the epoch and tells all processes. `name`:
-- <user>:<bucket>:<from>:<to>[:<other bucket>]. `source`: the <storage>:<bucket> whose changes make other tasks from
-- now on, or nil. An epoch is never lower than the time (ms), so that no number comes twice after a flush or a
-- failover. For a day, w:epochs keeps the epoch of the last change of each name and source; a process with an older
-- view reads everything.
-- include part_time
local function policy_changed(name, source)
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    local epoch = math.max(tonumber(redis.call('GET', 'w:epoch') or '0') + 1, now)
    local text = string.format('%.0f', epoch)
    redis.call('SET', 'w:epoch', text)
    redis.call('ZREMRANGEBYSCORE', 'w:epochs', '-inf', string.format('%.0f', epoch - 86400000))
    redis.call('ZADD', 'w:epochs', text, 'n:' .. name)
    if source then
        redis.call('ZADD', 'w:epochs', text, 's:' .. source)
    end
    redis.call('PUBLISH', 'weir:replications', text)
end
-- Ends every change of the configuration: raises its count, so that a loss of the change is noticed
-- (docs/store-redis.md, I5).
local function config_changed()
    redis.call('INCR', 'w:config')
end
-- Called when a replication of the bucket is removed: the numbers of its destination may be wrong from now on, and
-- perhaps nobody needs the vectors of the bucket any more. w:forget has the time (ms) from which no task of a removed
-- replication can run any more (docs/replication.md, V3).
local function vectors_unused(bucket)
    redis.call('ZADD', 'w:forget', string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) + 86400000), bucket)
end
-- Makes a new status of a replication. `init_done` '1': there is nothing to copy first. `listings`: number of listings
-- that are open. Answers the time at which the status was made.
local function status_new(key, init_done, listings)
    local created = rfc3339()
    redis.call('DEL', key)
    redis.call('HSET', key, 'created_at', created, 'paused', '0', 'archived', '0', 'obj_listed', '0', 'obj_done', '0',
        'obj_failed', '0', 'bytes_listed', '0', 'bytes_done', '0', 'events', '0', 'events_done', '0',
        'listing_started', init_done, 'listings', listings)
    if init_done == '1' then
        redis.call('HSET', key, 'init_done_at', created)
    end
    return created
end
-- Adds the bucket to the blocked buckets of the storage (`command` SADD), or removes it (SREM).
local function policy_block(command, storage, bucket)
    if redis.call(command, 'p:route_block:' .. storage, bucket) == 1 then
        redis.call('PUBLISH', 'weir:routes', 'changed')
    end
end
-- policy_places() records that the user's bucket is on the storage `present`, and that a copy of it is on `copy`
-- (docs/forward.md, B3). Names are escaped, as in keys; `present_raw` is not. policy_pin() sets the routing policy of
-- the bucket. A policy that is new is a pin, which holds for its user alone (w:pins; docs/forward.md, rule 5).
local function policy_pin(user, bucket, storage_raw)
    local name = user .. ':' .. bucket
    if redis.call('EXISTS', 'p:route:' .. name) == 0 then
        redis.call('SADD', 'w:pins', name)
    end
    redis.call('SET', 'p:route:' .. name, storage_raw)
end
local function policy_places(user, bucket, present, present_raw, copy)
    policy_pin(user, bucket, present_raw)
    redis.call('HDEL', 'w:copies', present .. ':' .. bucket)
    redis.call('HSET', 'w:copies', copy .. ':' .. bucket, user)
    redis.call('PUBLISH', 'weir:routes', 'changed')
end
-- Whether the bucket has a switch that has not begun, or has ended without success. Then everything is as it was before
-- the switch.
local function switch_waits(user, bucket)
    local status = redis.call('HGET', 'p:switch:' .. user .. ':' .. bucket, 'lastStatus')
    return status == 'not_started' or status == 'error' or status == 'skipped'
end
-- Whether the bucket has a switch that is not done. Switches of older weirs have the field IsDone.
local function switch_open(user, bucket)
    local row = redis.call('HMGET', 'p:switch:' .. user .. ':' .. bucket, 'lastStatus', 'IsDone')
    return row[1] and row[1] ~= 'done' or not row[1] and row[2] == '0'
end
