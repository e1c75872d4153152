-- Records that a copy has brought the destination up to a number (docs/replication.md, V2).
-- ARGV: fields of the source and of the destination; '1' if the things are deleted; life (s) of vectors in which all
-- places agree (all of these vectors expire or none, V5); number of lockDB, key of the lock ('': none), its token;
-- number of appDB; then for each vector: key, number (0: there was no vector). Answers 1; 0: the caller does not hold
-- the lock.
local source, destination = ARGV[1], ARGV[2]
if ARGV[6] ~= '' then
    redis.call('SELECT', ARGV[5])
    if redis.call('GET', ARGV[6]) ~= ARGV[7] then
        return 0
    end
    redis.call('SELECT', ARGV[8])
end
local agreed = ARGV[3] == '1'
for i = 9, #ARGV, 2 do
    local key, number = ARGV[i], tonumber(ARGV[i + 1])
    local row = redis.call('HMGET', key, source, destination)
    if number > tonumber(row[2] or '0') and number <= tonumber(row[1] or '0') then
        redis.call('HSET', key, destination, number)
    end
    local numbers = agreed and redis.call('HVALS', key) or {}
    for n = 2, #numbers do
        agreed = agreed and numbers[n] == numbers[1]
    end
end
for i = 9, agreed and #ARGV or 0, 2 do
    redis.call('EXPIRE', ARGV[i], ARGV[4])
end
return 1
