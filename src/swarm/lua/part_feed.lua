-- The feed. The list `deltas` is there while there is a consumer; its first element is the number of the record before the others, so that
-- an announce only pushes. `deltas_at` keeps the number while there is no consumer.
-- include part_keys
local list, consumers = P .. 'deltas', P .. 'consumers'
local function text(number)
    return string.format('%.0f', number)
end
-- The number before the first record, and that of the last.
local function range()
    local base = tonumber(call('LINDEX', list, 0) or call('GET', P .. 'deltas_at') or '0')
    return base, base + math.max(call('LLEN', list) - 1, 0)
end
-- What all have acknowledged goes (F2).
local function trim()
    local base, last = range()
    local acknowledged = nil
    for _, number in ipairs(call('HVALS', consumers)) do
        acknowledged = math.min(acknowledged or last, tonumber(number))
    end
    if not acknowledged then
        call('SET', P .. 'deltas_at', text(last))
        call('DEL', list)
    elseif acknowledged > base then
        call('LTRIM', list, text(acknowledged - base), -1)
        call('LSET', list, 0, text(acknowledged))
    end
end
