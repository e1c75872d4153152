-- Shared by all scripts. P, from ARGV[1], is the prefix of all keys. base36() writes an id in base 36, as keys have it.
local P, call = ARGV[1], redis.call
local function base36(text)
    local n, out = tonumber(text), ''
    repeat
        local d = n % 36
        out = string.sub('0123456789abcdefghijklmnopqrstuvwxyz', d + 1, d + 1) .. out
        n = (n - d) / 36
    until n == 0
    return out
end
