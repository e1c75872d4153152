-- The number of a new torrent or user.
-- include part_keys
-- `wanted` '0': the next free one. Answers it in base 10 and base 36, or nothing when another has it.
local function number(kind, wanted)
    local last, id = tonumber(call('HGET', P .. 'ids', kind) or '0'), tonumber(wanted)
    if id == 0 then
        id = last + 1
    elseif call('HEXISTS', P .. kind .. '_ids', base36(id)) == 1 then
        return nil
    end
    if id > last then
        call('HSET', P .. 'ids', kind, string.format('%.0f', id))
    end
    return string.format('%.0f', id), base36(id)
end
