-- Answers whether every process that was heard of lately holds a map (docs/sharding.md, H7).
-- ARGV: '<storage>:<bucket>', number of the map, how long the word of a process counts (s); the asker's id, its last
-- word, and the run of the store's server that took this word.
-- Answers {'all'}, {'forgotten'} if the store does not have the asker's last word, or {'waits', a process that does not
-- hold the map, the smallest key of a request for which a process waits ('': none)}.
-- include part_unsure
local now = tonumber(redis.call('TIME')[1])
if redis.call('HGET', 'w:gateways', ARGV[4]) ~= ARGV[5] or store_run() ~= ARGV[6] then
    return {'forgotten'}
end
local held, rows = {}, redis.call('HGETALL', 'w:shard:held:' .. ARGV[1])
for i = 1, #rows, 2 do
    held[rows[i]] = rows[i + 1]
end
local wanted, waits, busiest = tonumber(ARGV[2]), nil, ''
rows = redis.call('HGETALL', 'w:gateways')
for i = 1, #rows, 2 do
    local told = string.match(rows[i + 1], ':(%d+)$')
    local number, busy = string.match(held[rows[i]] or '', '^(%d+):?(.*)$')
    if told and told + ARGV[3] >= now and not (number and tonumber(number) >= wanted and busy == '') then
        waits = rows[i]
        if busy and busy ~= '' and (busiest == '' or busy < busiest) then
            busiest = busy
        end
    end
end
return waits and {'waits', waits, busiest} or {'all'}
