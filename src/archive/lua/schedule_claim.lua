-- Claims the accounts whose last full sync is the oldest (docs/archive.md, T3 and T4).
-- ARGV: how many accounts to claim; the locks' time to live in ms; the least age of the last sync in ms; a random word;
-- how many accounts to examine; '1' to put leased accounts whose lock is gone, and held accounts whose hold has ended,
-- back into the ready sets; then the ready sets to claim from, as `<host>:<satellite>`.
-- Returns the time in ms; the ms after which an account may be found (-1: only news can bring one); then, for each
-- claimed account, its entry, score, fence and token (the value of its lock).
-- include part_lock
local count, ttl, resync, word = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local SLICE, HOLD_MAX = 64, 7 * 86400000 + 3600000
-- Puts a leased account back into its ready set if its lock is free.
local function look(entry)
    local _, member = split(entry)
    local left = locked(lock_of(member), ttl)
    if left then
        call('ZADD', LEASED, text(now + left), entry)
        return
    end
    call('ZREM', LEASED, entry)
    if not ready(entry, member) then
        drop(entry, member)
    end
end
local function wake(entry)
    local _, member = split(entry)
    call('ZREM', HOLD, entry)
    if not ready(entry, member) then
        drop(entry, member)
    end
end
-- Calls fn for up to SLICE entries of a set whose score, a time, is between `from` and `to`.
local function each(set, from, to, fn)
    for _, entry in ipairs(call('ZRANGEBYSCORE', set, from, to, 'LIMIT', 0, SLICE)) do
        fn(entry)
    end
end
if ARGV[6] == '1' then
    each(LEASED, '-inf', text(now), look)
    each(HOLD, '-inf', text(now), wake)
    -- Such times exist only if the store's clock was ahead and has gone back.
    each(LEASED, '(' .. text(now + 2 * ttl + 2 * LOOK), '+inf', look)
    each(HOLD, '(' .. text(now + HOLD_MAX), '+inf', wake)
end

local sets, at, heads = {}, {}, {}
local function read_head(i)
    local top = call('ZRANGE', sets[i], 0, 0, 'WITHSCORES')
    heads[i] = top[1] and {entry = top[1], score = tonumber(top[2])} or nil
end
for i = 7, #ARGV do
    sets[i - 6] = READY .. ARGV[i]
    at[sets[i - 6]] = i - 6
    read_head(i - 6)
end
local function lowest()
    local best = nil
    for i = 1, #sets do
        if heads[i] and (not best or heads[i].score < heads[best].score) then
            best = i
        end
    end
    return best
end

local fence, claimed, wait = last_fence(), 0, -1
local out = {text(now), '-1'}
-- Handles the first entry of a ready set: claims it, or moves it to the index where it belongs.
local function handle(i)
    local entry, score = heads[i].entry, heads[i].score
    local _, member = split(entry)
    local tracked, set = call('ZSCORE', TRACKED, member), set_of(entry)
    call('ZREM', sets[i], entry)
    if not tracked then
        drop(entry, member)
    elseif set ~= sets[i] or (score > FRONT_MAX and tonumber(tracked) ~= score) then
        ready(entry, member)
        if at[set] then
            read_head(at[set])
        end
    else
        local next = next_fence(fence)
        local token = text(next) .. '-' .. word
        local left = take(lock_of(member), token, ttl)
        if left then
            call('ZADD', LEASED, text(now + left), entry)
        else
            fence, claimed = next, claimed + 1
            call('ZADD', LEASED, text(now + ttl), entry)
            if score <= FRONT_MAX then
                call('ZADD', FIRST, 'XX', text(FRONT - score), entry) -- the sync that was asked for has begun
            end
            for _, value in ipairs({entry, tracked, text(fence), token}) do
                out[#out + 1] = value
            end
        end
    end
    if claimed < count then
        read_head(i)
    end
end
local looks = tonumber(ARGV[5])
while claimed < count do
    local best = lowest()
    if not best then
        break
    elseif looks == 0 then
        wait = 0
        break
    elseif heads[best].score + resync > now then
        wait = heads[best].score + resync - now
        break
    end
    looks = looks - 1
    handle(best)
end
if claimed > 0 then
    call('SET', FENCE, text(fence))
else
    for _, set in ipairs({LEASED, HOLD}) do
        local top = call('ZRANGE', set, 0, 0, 'WITHSCORES')
        if top[1] then
            local left = math.max(tonumber(top[2]) - now, 0)
            wait = wait < 0 and left or math.min(wait, left)
        end
    end
    out[2] = text(math.min(wait, 1e12))
end
return out
