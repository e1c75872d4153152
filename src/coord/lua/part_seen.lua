-- seen(): in the database of the queue. KEYS: a data folder, and the highest number that the store has acknowledged to it; or none
-- (docs/store-redis.md, I3). Each acknowledged step of the folder has a number. A store that has lost one of them does nothing, and says so:
-- then an error is answered, which the script is to return. Else nil, and seen_number is the step's.
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
