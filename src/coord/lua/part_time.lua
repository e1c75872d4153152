-- `time` is the store's time, as TIME answers it. rfc3339() writes it in the form of RFC 3339, with nanoseconds.
local time = redis.call('TIME')
local function rfc3339()
    local seconds = tonumber(time[1])
    local days = math.floor(seconds / 86400)
    -- Periods of 400 years begin in March, so that leap days come last.
    local day = days + 719468
    local era = math.floor(day / 146097)
    day = day - era * 146097
    local year = math.floor((day - math.floor(day / 1460) + math.floor(day / 36524) - math.floor(day / 146096)) / 365)
    day = day - (365 * year + math.floor(year / 4) - math.floor(year / 100))
    local month = math.floor((5 * day + 2) / 153)
    day = day - math.floor((153 * month + 2) / 5) + 1
    month = month < 10 and month + 3 or month - 9
    year = year + era * 400 + (month <= 2 and 1 or 0)
    seconds = seconds - days * 86400
    return string.format('%04d-%02d-%02dT%02d:%02d:%02d.%06d000Z', year, month, day, math.floor(seconds / 3600),
        math.floor(seconds / 60) % 60, seconds % 60, time[2])
end
