-- Functions for a store that may have lost changes (docs/store-redis.md, I4). configDB must be selected.
-- include part_time
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
-- Tells every process to read everything again.
local function tell_all()
    for _, channel in ipairs({'users', 'storages', 'routes', 'webhooks'}) do
        redis.call('PUBLISH', 'weir:' .. channel, '')
    end
    redis.call('PUBLISH', 'weir:replications', 'all')
end
-- Records that the store may have lost changes: all replications must be compared again, and every process must read
-- everything again. The new epoch is one that no process has seen.
local function went_back()
    local epoch = math.max(tonumber(redis.call('GET', 'w:epoch') or '0') + 1, now_ms)
    redis.call('SET', 'w:epoch', string.format('%.0f', epoch))
    redis.call('HSET', 'w:installation', 'back', '1')
    redis.call('HINCRBY', 'w:installation', 'round', 1)
    tell_all()
end
-- Declares that the configuration in the store is the right one: sets its count above `count`, the highest that was
-- seen.
local function config_settled(count)
    redis.call('SET', 'w:config', string.format('%.0f', math.max(now_ms, count + 1)))
end
