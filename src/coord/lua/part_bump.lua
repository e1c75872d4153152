-- One more than the highest number of the vector (V1); a vector that was to expire lives again (V3).
local function bump(key, field)
    local highest = 0
    for _, number in ipairs(redis.call('HVALS', key)) do
        highest = math.max(highest, tonumber(number))
    end
    redis.call('HSET', key, field, highest + 1)
    redis.call('PERSIST', key)
    return highest + 1
end
