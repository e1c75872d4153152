-- Adds tasks. ARGV for each task: queue, id, message, delay (s; 0: at once), unique key ('': none), life of that key
-- (s). The clock is the store's.
-- Answers for each task 1 if it was added, 0 if its id exists, -1 if its unique key is held. With KEYS (part_seen) the
-- step's number follows.
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
