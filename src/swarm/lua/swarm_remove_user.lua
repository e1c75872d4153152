-- Removes a user with all of the user's peers. ARGV: prefix, channel, passkey. Answers 1, or 0 when there was no such user.
-- include part_drop
local key = P .. 'user:' .. ARGV[3]
local id = call('HGET', key, 'id')
if not id then
    return 0
end
local uid = base36(id)
call('DEL', key)
call('HDEL', P .. 'user_ids', uid)
for _, member in ipairs(call('SMEMBERS', P .. 'userpeers:' .. uid)) do
    drop(member)
end
call('PUBLISH', ARGV[2], 'user')
return 1
