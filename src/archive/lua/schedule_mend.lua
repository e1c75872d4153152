-- Compares accounts with `tracked`. ARGV: `look` or `fix`; the key of the set in which the entries were found; then
-- entries.
-- `look` changes nothing. It returns the entries of accounts that are tracked but in no other place: somebody has added
-- them by hand.
-- `fix` corrects the indexes. It returns how many accounts were found, dropped and moved, and how many scores were in
-- the future.
-- include part_schedule
if not mapped() then
    return 'NOMAP'
end
local fix, place = ARGV[1] == 'fix', ARGV[2]
local in_ready = string.sub(place, 1, #READY) == READY
local FUTURE = 3600000
local strangers, found, dropped, moved, future = {}, 0, 0, 0, 0
-- Puts a tracked account into exactly one place.
local function settle(entry, member, score)
    local set, leased, held = set_of(entry), call('ZSCORE', LEASED, entry), call('ZSCORE', HOLD, entry)
    if in_ready and place ~= set then
        call('ZREM', place, entry)
        moved = moved + 1
        if not leased and not held then
            ready(entry, member)
        end
        return
    end
    local mine = call('ZSCORE', set, entry)
    if (leased or held) and mine then
        call('ZREM', set, entry)
        moved = moved + 1
    end
    if leased and held then
        call('ZREM', HOLD, entry)
    elseif not leased and not held and not mine then
        ready(entry, member)
        found = found + 1
    elseif not leased and not held and tonumber(mine) > FRONT_MAX and tonumber(mine) ~= tonumber(score) then
        ready(entry, member)
    end
end
for i = 3, #ARGV do
    local entry = ARGV[i]
    local _, member = split(entry)
    local score = call('ZSCORE', TRACKED, member)
    if not fix then
        if score and not call('ZSCORE', LEASED, entry) and not call('ZSCORE', HOLD, entry) and
            not call('ZSCORE', set_of(entry), entry) then
            strangers[#strangers + 1] = entry
        end
    elseif not score then
        drop(entry, member)
        call('ZREM', place, entry)
        dropped = dropped + 1
    else
        if tonumber(score) > now + FUTURE then
            score = text(now)
            call('ZADD', TRACKED, 'XX', score, member)
            future = future + 1
        end
        settle(entry, member, score)
    end
end
if found > 0 then
    news()
end
return fix and {found, dropped, moved, future} or strangers
