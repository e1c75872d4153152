-- Changes slots_used of a user by one, never below 0. ARGV: prefix, the user's key, '1' or '-1'. Answers the new number, or
-- nil when there is no such user.
local used = redis.call('HGET', ARGV[2], 'slots_used')
if not used then
    return false
end
if ARGV[3] == '-1' and tonumber(used) <= 0 then
    return 0
end
return redis.call('HINCRBY', ARGV[2], 'slots_used', ARGV[3])
