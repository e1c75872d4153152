-- Notes that the accounts of a slot are being loaded, or that they are loaded. ARGV: `begin`, slot, a random mark; or
-- `end`, slot, the mark, epoch of the table. Returns 1. Returns 0 if the mark does not exist any more, because the
-- store was emptied or another rebuild of the slot has begun.
-- include part_schedule
local building = 'w:archive:building'
if ARGV[1] == 'begin' then
    call('HSET', building, ARGV[2], ARGV[3])
    return 1
elseif call('HGET', building, ARGV[2]) ~= ARGV[3] then
    return 0
end
call('HDEL', building, ARGV[2])
call('HSET', BUILT, ARGV[2], ARGV[4])
return 1
