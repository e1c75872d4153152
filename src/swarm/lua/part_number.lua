-- Chooses the id of a new torrent or user.
-- include part_keys
-- `kind` is 'torrent' or 'user'. `wanted` is the id; '0': the next free id. Returns the id in base 10 and in base 36;
-- nil: another torrent or user has the id.
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
