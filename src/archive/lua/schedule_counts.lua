-- Counts accounts. ARGV: '1' to count also due and never synced accounts, the least age of the last sync in ms. Returns
-- the numbers of accounts that are tracked, ready, leased, held, in front, odd (not the name of an account); the number
-- of slots that are built; the epoch of the table; the numbers of accounts that are due and that were never synced.
-- include part_schedule
local ready_count, due = 0, 0
for _, set in ipairs(call('SMEMBERS', SETS)) do
    ready_count = ready_count + call('ZCARD', set)
    if ARGV[1] == '1' then
        due = due + call('ZCOUNT', set, '-inf', text(now - ARGV[2]))
    end
end
local never = ARGV[1] == '1' and call('ZCOUNT', TRACKED, '-1', '-1') or 0
return {call('ZCARD', TRACKED), ready_count, call('ZCARD', LEASED), call('ZCARD', HOLD), call('ZCOUNT', FIRST, 0, '+inf'),
    call('SCARD', 'w:archive:odd'), call('HLEN', BUILT), tonumber(call('HGET', MAP, 'epoch') or '0'), due, never}
