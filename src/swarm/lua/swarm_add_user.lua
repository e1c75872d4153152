-- Adds a user, or changes the multipliers and slots of a user that exists. ARGV: prefix, channel, passkey, id ('0': the
-- next free id), the multipliers for upload and download, slots, slots_used, snatches. Answers the user's id; nil: another
-- user has the id.
-- include part_number
local key = P .. 'user:' .. ARGV[3]
local id, id36 = call('HGET', key, 'id'), nil
if id then
    call('HSET', key, 'up_multiplier', ARGV[5], 'down_multiplier', ARGV[6], 'slots', ARGV[7])
else
    id, id36 = number('user', ARGV[4])
    if not id then
        return false
    end
    call('HSET', key, 'id', id, 'passkey', ARGV[3], 'up_multiplier', ARGV[5], 'down_multiplier', ARGV[6], 'slots', ARGV[7],
        'slots_used', ARGV[8], 'snatches', ARGV[9])
    call('HSET', P .. 'user_ids', id36, ARGV[3])
end
call('PUBLISH', ARGV[2], 'user')
return id
