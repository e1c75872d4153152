-- gateway_word() stores the word of a process in w:gateways, and removes processes whose word is old. A word from the
-- future was written before the clock went back: its life begins now. Answers the word that it has replaced ('': the
-- store had none of the process) and the new word. `now` (s): the store's time; `life` (s): how long a word counts.
local function gateway_word(process, epoch, now, life)
    local word = epoch .. ':' .. string.format('%.0f', now)
    local before = redis.call('HGET', 'w:gateways', process) or ''
    redis.call('HSET', 'w:gateways', process, word)
    local rows = redis.call('HGETALL', 'w:gateways')
    for i = 1, #rows, 2 do
        local told = tonumber(string.match(rows[i + 1], ':(%d+)$') or '0')
        if told + 10 * life < now then
            redis.call('HDEL', 'w:gateways', rows[i])
        elseif told > now then
            redis.call('HSET', 'w:gateways', rows[i], string.match(rows[i + 1], '^(.*:)') .. now)
        end
    end
    return before, word
end
