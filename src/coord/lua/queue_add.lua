-- Adds tasks. ARGV for each: queue, id, message, delay (s; 0: at once), unique key, life of that key (s). Times are the store's.
-- Answers for each: 1 when it was added, 0 when its id exists, -1 when the unique key is held; with KEYS (part_seen) then the step's number.
-- include part_enqueue
-- include part_seen
local lost = seen()
if lost then
    return lost
end
local result = {}
for i = 1, #ARGV, 6 do
    result[#result + 1] = enqueue(ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4], ARGV[i + 5])
end
flush()
result[#result + 1] = seen_number
return result
