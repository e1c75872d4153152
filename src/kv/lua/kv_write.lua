-- Makes all changes or none, then reads rows (docs/kv.md). ARGV: the number of changes; for each change its kind, partition and key, the
-- value of a put, and the stamp of a change that has the condition "same"; then partition and key of each row to read. A kind is p (put),
-- r (remove) or c (check), followed by the condition: a (absent), e (exists), s (same) or none.
-- If the number of changes begins with '+' ("+3"), the write is part of a removal, and Redis has refused it before because it is full.
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
-- When Redis is full, it refuses HSET and ZADD, unless the script has already called a writing command that needs no memory. So for a
-- removal the script calls UNLINK first, as long as Redis uses less than a sixteenth more than maxmemory.
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
        -- The sorted set has the same keys as the hash (docs/kv.md, K7), so only a new key must be added to it.
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
