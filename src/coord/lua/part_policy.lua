-- In the database of policies. policy_changed() ends every change of a policy; `source`: <storage>:<bucket> whose changes make other
-- tasks from now on, or nil. An epoch is not before the time (ms), so that no number comes again after a flush or a failover.
-- include part_time
local function policy_changed(source)
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    local epoch = string.format('%.0f', math.max(tonumber(redis.call('GET', 'w:epoch') or '0') + 1, now))
    redis.call('SET', 'w:epoch', epoch)
    if source then
        redis.call('HSET', 'w:epochs', source, epoch)
    end
    redis.call('PUBLISH', 'weir:replications', epoch)
end
local function policy_block(command, storage, bucket)
    if redis.call(command, 'p:route_block:' .. storage, bucket) == 1 then
        redis.call('PUBLISH', 'weir:routes', 'changed')
    end
end
-- A switch that is not done; older ones have IsDone.
local function switch_open(user, bucket)
    local row = redis.call('HMGET', 'p:switch:' .. user .. ':' .. bucket, 'lastStatus', 'IsDone')
    return row[1] and row[1] ~= 'done' or not row[1] and row[2] == '0'
end
