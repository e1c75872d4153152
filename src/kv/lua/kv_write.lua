-- Makes all changes or none, then reads rows (docs/kv.md). ARGV: how many changes; for each change its kind, partition and key, the value of
-- a put, and the stamp of a change that has the condition "same"; then partition and key of each row to read. A kind is p (put), r (remove)
-- or c (check), and behind it the condition: a (absent), e (exists), s (same) or none.
-- A count with a '+' in front ("+3") is of a removal on a Redis that is full.
-- Answers {0, values}, or {n} when the condition of the n-th change does not hold.
local call = redis.call
local count, at = tonumber(ARGV[1]), 2
for i = 1, count do
    local kind, hash, key = ARGV[at], 'kv:' .. ARGV[at + 1] .. ':h', ARGV[at + 2]
    at = at + (kind:byte() == 112 and 4 or 3) -- 'p' has a value
    local when, holds = kind:sub(2), true
    if when == 's' then
        holds = call('HGET', hash, key) == ARGV[at]
        at = at + 1
    elseif when ~= '' then
        holds = (call('HEXISTS', hash, key) == 1) == (when == 'e')
    end
    if not holds then
        return {i}
    end
end
-- Redis refuses HSET and ZADD when it is full, unless the script has called a command that needs no memory before. A removal is let in so,
-- until a sixteenth more than maxmemory is in use.
if ARGV[1]:byte() == 43 then
    local info = call('INFO', 'memory')
    local used, most = tonumber(info:match('used_memory:(%d+)')), tonumber(info:match('maxmemory:(%d+)'))
    if used < most * 17 / 16 then
        call('UNLINK', 'kv:none')
    end
end
at = 2
for _ = 1, count do
    local kind, partition, key = ARGV[at], 'kv:' .. ARGV[at + 1], ARGV[at + 2]
    local what = kind:byte()
    if what == 112 then
        -- The sorted set has the keys of the hash (docs/kv.md, K7), so only a new key goes there.
        if call('HSET', partition .. ':h', key, ARGV[at + 3]) == 1 then
            call('ZADD', partition .. ':z', 0, key)
        end
        at = at + 1
    elseif what == 114 and call('HDEL', partition .. ':h', key) == 1 then -- 'r'
        call('ZREM', partition .. ':z', key)
    end
    at = at + (kind:sub(2) == 's' and 4 or 3)
end
local out = {0}
for i = at, #ARGV, 2 do
    out[#out + 1] = call('HGET', 'kv:' .. ARGV[i] .. ':h', ARGV[i + 1])
end
return out
