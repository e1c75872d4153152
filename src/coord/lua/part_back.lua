-- In the database of policies. Changes may be lost (docs/store-redis.md, I4): all replications are to be compared anew, and every process
-- reads everything again. The epoch is one that nobody had.
-- include part_time
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local function tell_all()
    for _, channel in ipairs({'users', 'storages', 'routes', 'webhooks'}) do
        redis.call('PUBLISH', 'weir:' .. channel, '')
    end
    redis.call('PUBLISH', 'weir:replications', 'all')
end
local function went_back()
    local epoch = math.max(tonumber(redis.call('GET', 'w:epoch') or '0') + 1, now_ms)
    redis.call('SET', 'w:epoch', string.format('%.0f', epoch))
    redis.call('HSET', 'w:installation', 'back', '1')
    redis.call('HINCRBY', 'w:installation', 'round', 1)
    tell_all()
end
-- The configuration is what is there from now on: its count is past every one that a process has seen.
local function config_settled(count)
    redis.call('SET', 'w:config', string.format('%.0f', math.max(now_ms, count + 1)))
end
