-- Handles the word of a process (docs/store-redis.md, I1 to I5; docs/replication.md, "Epochs"). With its word a process
-- asks whether the store is the one that it knows, and tells that it lives and which epoch of the policies it holds.
-- ARGV: numbers of appDB, queueDB and configDB (the first two '' when the databases are not joined); id of the process
-- ('': no epoch is told), epoch, life of the word (s); data folder, id of the installation that it knows ('': none),
-- highest number that was acknowledged to it, '1' if that number is certain, run of the store's server that it
-- remembers; number of changes of the configuration that it has seen; an id for a store that has none.
-- Answers texts: 'empty', 'other' (and the store's id) or 'older'; or 'known', then id, number, changes of the
-- configuration, round, '1' while copies must be begun again, how many folders have yet to tell their number, run, the
-- word of the process that this one has replaced, and this word.
-- include part_back
-- include part_unsure
-- include part_word
local app, queue, config = ARGV[1], ARGV[2], ARGV[3]
local process, epoch, life = ARGV[4], ARGV[5], tonumber(ARGV[6])
local folder, known, floor, certain, old_run = ARGV[7], ARGV[8], tonumber(ARGV[9]), ARGV[10], ARGV[11]
local vouch_s, quiet_s, forget_s = 60, 600, 30 * 86400
local now = tonumber(time[1])
local run = store_run()
local here = redis.call('HMGET', 'w:installation', 'id', 'run', 'run_at')
local id, lost = here[1], false
if not id and (known ~= '' or redis.call('HEXISTS', 'w:installation', 'restoring') == 1) then
    return {'empty'}
elseif known ~= '' and id ~= known then
    return {'other', id}
elseif not id then
    id = ARGV[13]
    redis.call('HSET', 'w:installation', 'id', id, 'round', '1')
    config_settled(tonumber(redis.call('GET', 'w:config') or '0'))
    if app ~= '' then
        redis.call('SELECT', app)
        redis.call('SET', 'w:installed', id)
        redis.call('SELECT', queue)
        redis.call('SET', 'w:installed', id)
        redis.call('SELECT', config)
    end
end
local count = redis.call('GET', 'w:config') or '0'
if known ~= '' and tonumber(count) < tonumber(ARGV[12]) then
    return {'older', id}
end
if here[2] ~= run then
    here[3] = time[1]
    redis.call('HSET', 'w:installation', 'run', run, 'run_at', time[1])
end
-- A database without the id was emptied alone.
if app ~= '' then
    for _, database in ipairs({app, queue}) do
        redis.call('SELECT', database)
        if redis.call('GET', 'w:installed') ~= id then
            redis.call('SET', 'w:installed', id)
            lost = true
        end
    end
    redis.call('SELECT', queue)
end
-- Finds the number that was acknowledged to this folder, and judges the numbers of the other folders.
local rows, unsure = redis.call('HGETALL', 'w:seen'), 0
local function row_set(name, number, of, told, state)
    redis.call('HSET', 'w:seen', name, string.format('%.0f', number) .. ':' .. of .. ':' .. string.format('%.0f', told) .. ':' .. state)
end
local number = 0
for i = 1, #rows, 2 do
    local n, of, told, state = string.match(rows[i + 1], '^(%d+):(%w*):(%d+):(%a)$')
    told = tonumber(told or '0')
    if rows[i] == folder then
        number = tonumber(n or '0')
    elseif state == 'o' and of ~= run and now - tonumber(here[3]) > vouch_s then -- the folder does not come back to tell its number
        lost = true
        row_set(rows[i], n, run, told, 'c')
    elseif state == 'o' and of ~= run then
        unsure = unsure + 1
    elseif state == 'o' and now - told > quiet_s then -- its last step was acknowledged long ago
        row_set(rows[i], n, of, told, 'c')
    elseif now - told > forget_s then
        redis.call('HDEL', 'w:seen', rows[i])
    end
end
if number < floor or (certain ~= '1' and old_run ~= run) then
    lost = true
end
number = math.max(number, floor) + 1
row_set(folder, number, run, now, 'o')
redis.call('SELECT', config)
if lost then
    went_back()
end
local before, word = '', ''
if process ~= '' then
    before, word = gateway_word(process, epoch, now, life)
end
here = redis.call('HMGET', 'w:installation', 'round', 'back')
return {'known', id, string.format('%.0f', number), count, here[1] or '1', here[2] or '', tostring(unsure), run, before, word}
