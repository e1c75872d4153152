-- Reads a page of the tasks in one state, the oldest or soonest first. ARGV: queue, state, how many tasks to skip, how
-- many to read. Answers {message, score} for each task.
local prefix = 'asynq:{' .. ARGV[1] .. '}:'
local skip, limit = tonumber(ARGV[3]), tonumber(ARGV[4])
local result = {}
local function add(id, score)
    local message = redis.call('HGET', prefix .. 't:' .. id, 'msg')
    if message then
        result[#result + 1] = {message, score}
    end
end
if ARGV[2] == 'pending' or ARGV[2] == 'active' then
    local ids = redis.call('LRANGE', prefix .. ARGV[2], -skip - limit, -skip - 1)
    for i = #ids, 1, -1 do
        add(ids[i], '0')
    end
else
    local rows = redis.call('ZRANGE', prefix .. ARGV[2], skip, skip + limit - 1, 'WITHSCORES')
    for i = 1, #rows, 2 do
        add(rows[i], rows[i + 1])
    end
end
return result
