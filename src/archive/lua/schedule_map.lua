-- Stores the table of slots. ARGV: epoch of the table, then the satellites of the slots 0 to 255. Returns 1, or 0 if
-- the store has a table of this epoch or a later one.
-- include part_schedule
if tonumber(call('HGET', MAP, 'epoch') or '0') >= tonumber(ARGV[1]) then
    return 0
end
-- `since` is the time at which the store got its first table; before that the store was empty.
call('HSETNX', MAP, 'since', text(now))
call('HSET', MAP, 'epoch', ARGV[1])
for slot = 0, 255 do
    call('HSET', MAP, text(slot), ARGV[slot + 2])
end
news()
return 1
