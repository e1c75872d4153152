-- slots_used by one. ARGV: prefix, key of the user, 1 or -1. Answers the number, or nil when there is none.
local used = redis.call('HGET', ARGV[2], 'slots_used')
if not used then
    return false
end
if ARGV[3] == '-1' and tonumber(used) <= 0 then
    return 0
end
return redis.call('HINCRBY', ARGV[2], 'slots_used', ARGV[3])
