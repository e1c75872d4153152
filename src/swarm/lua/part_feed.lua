-- The feed (docs/swarm.md). The list `deltas` has the records. It exists while there is a consumer. Its first element
-- is not a record, but the number of the record before the first one, so that an announce only pushes its record. While
-- there is no consumer, `deltas_at` has the number of the last record.
-- include part_keys
local list, consumers = P .. 'deltas', P .. 'consumers'
local function text(number)
    return string.format('%.0f', number)
end
-- Returns the number before that of the first record, and the number of the last record.
local function range()
    local base = tonumber(call('LINDEX', list, 0) or call('GET', P .. 'deltas_at') or '0')
    return base, base + math.max(call('LLEN', list) - 1, 0)
end
-- Removes the records that all consumers have acknowledged (docs/swarm.md, F2).
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
