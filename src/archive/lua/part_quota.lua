-- `now` is the store's time in ms. rest_of() tells how long a rest that was noted still lasts. A rest of more than a day
-- and an hour was noted before the store's clock went back, and counts no more.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function rest_of(value)
    local rest = tonumber(value or 0) - now
    return rest > 0 and rest <= 90000000 and rest or 0
end
local function number(value)
    return string.format('%d', value)
end
