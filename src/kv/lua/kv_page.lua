-- Reads a page of a partition (docs/kv.md). ARGV: partition; start and end of the range, in the form that ZRANGEBYLEX needs; the most rows
-- of the page, and about the most bytes. Answers 1 when the page has the last row of the range, else 0; then each key with its value.
local hash, set = 'kv:' .. ARGV[1] .. ':h', 'kv:' .. ARGV[1] .. ':z'
local keys = redis.call('ZRANGEBYLEX', set, ARGV[2], ARGV[3], 'LIMIT', 0, ARGV[4])
local out, bytes = {#keys < tonumber(ARGV[4]) and 1 or 0}, 0
for from = 1, #keys, 32 do
    local to = math.min(from + 31, #keys)
    local values = redis.call('HMGET', hash, unpack(keys, from, to))
    for i = 1, to - from + 1 do
        out[#out + 1], out[#out + 2] = keys[from + i - 1], values[i]
        bytes = bytes + #(values[i] or '')
    end
    if bytes >= tonumber(ARGV[5]) and to < #keys then
        out[1] = 0
        break
    end
end
return out
