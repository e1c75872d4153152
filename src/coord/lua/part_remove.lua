-- Removes a task that is not active. `prefix` is that of the queue's keys, `state` the state of the task.
local function remove_task(prefix, id, state)
    local key = prefix .. 't:' .. id
    local unique = redis.call('HGET', key, 'unique_key')
    if state == 'pending' then
        redis.call('LREM', prefix .. 'pending', 0, id)
    else
        redis.call('ZREM', prefix .. state, id)
    end
    if unique and redis.call('GET', unique) == id then
        redis.call('DEL', unique)
    end
    redis.call('DEL', key)
end
