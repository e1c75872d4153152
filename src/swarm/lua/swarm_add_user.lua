-- Adds a user, or changes multipliers and slots of one that is there. ARGV: prefix, channel, passkey, id, multipliers, slots, slots_used,
-- snatches. Answers its id, or nil when another user has it.
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
