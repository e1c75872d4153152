-- Reads one task. ARGV: queue, id. Answers {message, state, score}; nil: there is no such task.
local prefix = 'asynq:{' .. ARGV[1] .. '}:'
local row = redis.call('HMGET', prefix .. 't:' .. ARGV[2], 'msg', 'state')
if not row[1] then
    return false
end
local score = '0'
if row[2] ~= 'pending' and row[2] ~= 'active' then
    score = redis.call('ZSCORE', prefix .. row[2], ARGV[2]) or '0'
end
return {row[1], row[2], score}
