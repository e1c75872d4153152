-- Slots of a user.
-- include part_keys
-- One leecher more or less; the user of the public mode, and one that is gone, have none.
local function slots(uid, by)
    local passkey = uid ~= '0' and call('HGET', P .. 'user_ids', uid)
    if passkey and call('HINCRBY', P .. 'user:' .. passkey, 'slots_used', by) < 0 then
        call('HSET', P .. 'user:' .. passkey, 'slots_used', '0')
    end
end
