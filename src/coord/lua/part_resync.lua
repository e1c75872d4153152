-- Begins an initial copy again: all counters belong to the new round, and tasks of the earlier round count for nothing.
-- configDB must be selected, and is selected afterwards. `first`: queue, id and message of the first task.
-- include part_enqueue
-- Answers the name of a new round: the time, with a count in its last three digits, because the store's clock may show
-- the same time when two rounds begin shortly after each other.
local function round_after(old)
    local round = rfc3339()
    local same = old and string.sub(old, 1, 26) == string.sub(round, 1, 26)
    return same and string.format('%s%03dZ', string.sub(round, 1, 26), (tonumber(string.sub(old, 27, 29)) + 1) % 1000) or round
end
local function resync_begin(status, queue, config, first)
    local round = round_after(status_round(status))
    redis.call('HSET', status, 'resynced_at', round, 'obj_listed', '0', 'obj_done', '0', 'obj_failed', '0', 'bytes_listed', '0',
        'bytes_done', '0', 'listing_started', '0', 'listings', '1', 'events', '0', 'events_done', '0')
    redis.call('HDEL', status, 'init_done_at')
    redis.call('SELECT', queue)
    enqueue_beside(first[1], first[2], first[3], config .. ' ' .. queue .. ' l 0 ' .. round .. ' ' .. status, runs_for_another)
    flush()
    redis.call('SELECT', config)
end
