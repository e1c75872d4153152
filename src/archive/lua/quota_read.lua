-- Reads the states of hosts and tokens. ARGV: their keys. Returns the store's time (ms), then for each key limit,
-- remaining, reset, until, dead and words.
-- include part_quota
local answer = {number(now)}
for i = 1, #ARGV do
    answer[#answer + 1] = redis.call('HMGET', ARGV[i], 'limit', 'remaining', 'reset', 'until', 'dead', 'words')
end
return answer
