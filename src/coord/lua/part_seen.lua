-- seen() numbers a step (docs/store-redis.md, I3). queueDB must be selected. KEYS: a data folder, and the highest
-- number that the store has acknowledged to it; without KEYS the step gets no number. A store that has lost an
-- acknowledged number refuses the step: seen() answers an error, which the script must return. Else it answers nil, and
-- seen_number is the number of the step.
local seen_number
local function seen()
    if #KEYS == 0 then
        return nil
    end
    local number, rest = string.match(redis.call('HGET', 'w:seen', KEYS[1]) or '', '^(%d+)(:.*)$')
    if not number or tonumber(number) < tonumber(KEYS[2]) then
        return redis.error_reply('WENTBACK the store has lost what it had acknowledged')
    end
    seen_number = tonumber(number) + 1
    redis.call('HSET', 'w:seen', KEYS[1], string.format('%.0f', seen_number) .. rest)
    return nil
end
