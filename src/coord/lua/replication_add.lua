-- Makes a replication (docs/replication.md, P1, P2, P4).
-- ARGV: numbers of queueDB and configDB; user, bucket ('': a policy for all buckets of the user), from, to, other
-- bucket (the destination's; '': it has the same name), these escaped; bucket, from, other bucket, not escaped;
-- priority; the storage to which the route leads without a routing policy; URL for notices; '1': there is nothing to
-- copy; queue, id and message of the first task (id '': there is none).
-- Answers {'ok'}, or a refusal and a name.
-- include part_policy
-- include part_enqueue
local queue, config, user, bucket, from, to, other = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local raw_bucket, raw_from, raw_other, init_done = ARGV[8], ARGV[9], ARGV[10], ARGV[14]
local set = 'p:repl:' .. user .. (bucket ~= '' and ':' .. bucket or '')
local member = from .. ':' .. to .. (other ~= '' and ':' .. other or '')
local status = 'p:repl_st:' .. user .. ':' .. bucket .. ':' .. member
local route = bucket ~= '' and redis.call('GET', 'p:route:' .. user .. ':' .. bucket)
    or redis.call('GET', 'p:route:' .. user) or ARGV[12]
if route ~= raw_from then
    return {'route', route}
end
if redis.call('ZSCORE', set, member) then
    return {'exists'}
end
local members = redis.call('ZRANGE', set, 0, 0)
if members[1] and string.match(members[1], '^[^:]*') ~= from then
    return {'source', string.match(members[1], '^[^:]*')}
end
if bucket ~= '' then
    if init_done ~= '1' and switch_open(user, bucket) then
        return {'switch'}
    end
    if redis.call('SISMEMBER', 'p:route_block:' .. from, raw_bucket) == 1 then
        return {'destination', raw_from}
    end
    if redis.call('HEXISTS', 'w:copies', from .. ':' .. bucket) == 1 then
        return {'copy', raw_from}
    end
    local owner = other == '' and redis.call('HGET', 'w:copies', to .. ':' .. bucket)
    if owner and owner ~= user then
        return {'taken'}
    end
    -- If there is an archived replication of this name, the block was set for that one.
    local again = other ~= '' and redis.call('EXISTS', status) == 1
    if not again and redis.call('SISMEMBER', 'p:route_block:' .. to, other ~= '' and raw_other or raw_bucket) == 1 then
        return {'taken'}
    end
    if other ~= '' then
        for _, m in ipairs(redis.call('ZRANGE', 'p:repl:' .. user .. ':' .. other, 0, -1)) do
            local source, target, name = string.match(m, '^([^:]*):([^:]*):?(.*)$')
            if source == to or target == to and name == '' then
                return {'taken'}
            end
        end
        policy_block('SADD', to, raw_other)
        policy_pin(user, bucket, raw_from)
        redis.call('PUBLISH', 'weir:routes', 'changed')
    else
        policy_places(user, bucket, from, raw_from, to)
    end
    local created = status_new(status, init_done, ARGV[16] ~= '' and '1' or '0')
    if ARGV[13] ~= '' then
        redis.call('HSET', status, 'agent_url', ARGV[13])
    end
    if ARGV[16] ~= '' then
        redis.call('SELECT', queue)
        local tally = config .. ' ' .. queue .. ' l 0 ' .. created .. ' ' .. status
        enqueue_beside(ARGV[15], ARGV[16], ARGV[17], tally, runs_for_another)
        flush()
        redis.call('SELECT', config)
    end
end
redis.call('ZADD', set, ARGV[11], member)
config_changed()
policy_changed(user .. ':' .. bucket .. ':' .. member, bucket ~= '' and from .. ':' .. bucket or nil)
return {'ok'}
