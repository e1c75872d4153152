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
-- What comes with an object has vectors of its own only once it was changed by itself (V5).
local function bump_known(key, field)
    if redis.call('EXISTS', key) == 1 then
        bump(key, field)
    end
end
