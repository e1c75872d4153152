-- In the database of policies. policy_changed() ends every change of a policy. The epoch begins at the time (ms), so that no
-- number comes again when the database was flushed.
-- include part_time
local function policy_changed()
    redis.call('SET', 'w:epoch', time[1] .. '000', 'NX')
    redis.call('PUBLISH', 'weir:replications', redis.call('INCR', 'w:epoch'))
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
