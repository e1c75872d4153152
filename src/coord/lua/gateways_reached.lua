-- Answers 1 if every process that was heard of lately has reached an epoch, else 0.
-- ARGV: the epoch, or a member of w:epochs, which stands for the epoch of its last change (an absent member was changed
-- more than a day ago); how long the word of a process counts (s).
local now = tonumber(redis.call('TIME')[1])
local wanted = tonumber(ARGV[1]) or tonumber(redis.call('ZSCORE', 'w:epochs', ARGV[1]) or '-1')
local rows = redis.call('HGETALL', 'w:gateways')
for i = 2, #rows, 2 do
    local epoch, told = string.match(rows[i], '^(-?%d+):(%d+)$')
    if told and told + ARGV[2] >= now and tonumber(epoch) < wanted then
        return 0
    end
end
return 1
