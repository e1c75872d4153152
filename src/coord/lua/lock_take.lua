-- ARGV: life (ms), then pairs of key and token. Answers 1 for each that was taken, 0 where somebody has it.
local taken = {}
for i = 2, #ARGV, 2 do
    local mine = redis.call('SET', ARGV[i], ARGV[i + 1], 'NX', 'PX', ARGV[1]) or redis.call('GET', ARGV[i]) == ARGV[i + 1]
    taken[#taken + 1] = mine and 1 or 0
end
return taken
