-- `now` is the store's time in ms. rest_of() returns how long a stored rest still lasts. A rest of more than a day and
-- an hour was stored before the store's clock went back, so it is ignored.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function rest_of(value)
    local rest = tonumber(value or 0) - now
    return rest > 0 and rest <= 90000000 and rest or 0
end
local function number(value)
    return string.format('%d', value)
end
