-- Reads the tallies of some tasks. ARGV: cursor, how many keys to look at.
-- Answers the next cursor ('0': all keys were looked at), then for each task with a tally: key, state, tally. A task
-- keeps its key in all states, so a task that exists from the first page to the last is in at least one page.
local page = redis.call('SCAN', ARGV[1], 'MATCH', 'asynq:{*}:t:*', 'COUNT', ARGV[2], 'TYPE', 'hash')
local result = {page[1]}
for i = 1, #page[2] do
    local row = redis.call('HMGET', page[2][i], 'state', 'tally')
    if row[1] and row[2] then
        result[#result + 1] = page[2][i]
        result[#result + 1] = row[1]
        result[#result + 1] = row[2]
    end
end
return result
