-- Counts the download slots that a user has in use.
-- include part_keys
-- Adds `by` to the slots_used of a user, never below 0. User 0 (the public mode) and a user that was removed have no slots.
local function slots(uid, by)
    local passkey = uid ~= '0' and call('HGET', P .. 'user_ids', uid)
    if passkey and call('HINCRBY', P .. 'user:' .. passkey, 'slots_used', by) < 0 then
        call('HSET', P .. 'user:' .. passkey, 'slots_used', '0')
    end
end
