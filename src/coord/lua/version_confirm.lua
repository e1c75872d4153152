-- What a copy has brought over (V2). ARGV: key, field of the source, field of the destination, number, '1' when the thing is
-- gone, life of a vector that all agree on (s), database of locks, key of the lock ('': none), its token, database of vectors.
-- Answers 1, or 0 when the lock is not held.
local key, source, destination, number = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
if ARGV[8] ~= '' then
    redis.call('SELECT', ARGV[7])
    if redis.call('GET', ARGV[8]) ~= ARGV[9] then
        return 0
    end
    redis.call('SELECT', ARGV[10])
end
local at_source = tonumber(redis.call('HGET', key, source) or '0')
local at_destination = tonumber(redis.call('HGET', key, destination) or '0')
if number > at_destination and number <= at_source then
    redis.call('HSET', key, destination, number)
end
if ARGV[5] == '1' then
    local fields = redis.call('HGETALL', key)
    local same = #fields > 0
    for i = 4, #fields, 2 do
        same = same and fields[i] == fields[2]
    end
    if same then
        redis.call('EXPIRE', key, ARGV[6])
    end
end
return 1
