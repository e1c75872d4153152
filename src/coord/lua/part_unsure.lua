-- store_unsure() answers whether the store may have lost changes while the copies were not compared since
-- (docs/store-redis.md, I4): the store went back, or its server was started again and a data folder has yet to say
-- which number was acknowledged to it. `queue`, `config`: numbers of queueDB and configDB; configDB is selected
-- afterwards. store_run() answers the run of the store's server.
local function store_run()
    local run = ''
    for _, field in ipairs({{'server', 'run_id'}, {'replication', 'master_replid'}}) do
        local text = redis.pcall('INFO', field[1])
        run = run .. (type(text) == 'string' and string.match(text, field[2] .. ':(%w+)') or '')
    end
    return run
end
local function store_unsure(queue, config)
    redis.call('SELECT', config)
    local row = redis.call('HMGET', 'w:installation', 'back', 'run')
    local run = store_run()
    if row[1] or row[2] and row[2] ~= run then
        return true
    end
    redis.call('SELECT', queue)
    local unsure = false
    for _, value in ipairs(redis.call('HVALS', 'w:seen')) do
        local of, state = string.match(value, '^%d+:(%w*):%d+:(%a)$')
        unsure = unsure or state == 'o' and of ~= run
    end
    redis.call('SELECT', config)
    return unsure
end
