-- What a copy has brought over (V2). ARGV: field of the source, of the destination, '1' when the things are gone, life of a vector
-- that all agree on (s), database of locks, key of the lock ('': none), its token, database of vectors; then for each vector: key,
-- number (0: nothing was known of it). Answers 1, or 0 when the lock is not held.
local source, destination = ARGV[1], ARGV[2]
if ARGV[6] ~= '' then
    redis.call('SELECT', ARGV[5])
    if redis.call('GET', ARGV[6]) ~= ARGV[7] then
        return 0
    end
    redis.call('SELECT', ARGV[8])
end
for i = 9, #ARGV, 2 do
    local key, number = ARGV[i], tonumber(ARGV[i + 1])
    local row = redis.call('HMGET', key, source, destination)
    if number > tonumber(row[2] or '0') and number <= tonumber(row[1] or '0') then
        redis.call('HSET', key, destination, number)
    end
    if ARGV[3] == '1' then
        local numbers = redis.call('HVALS', key)
        local same = #numbers > 0
        for n = 2, #numbers do
            same = same and numbers[n] == numbers[1]
        end
        if same then
            redis.call('EXPIRE', key, ARGV[4])
        end
    end
end
return 1
