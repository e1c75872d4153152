-- Deletes some vectors of a bucket that has no replication (docs/replication.md, V3).
-- ARGV: numbers of appDB and configDB; epoch of the view in which the bucket has no replication; bucket, escaped;
-- pattern of the keys of its objects' vectors, cursor, how many keys to look at.
-- Answers the next cursor; '0': all keys were looked at; '': a policy was changed since, or it is too early.
-- include part_time
local app, config, bucket = ARGV[1], ARGV[2], ARGV[4]
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local due = redis.call('ZSCORE', 'w:forget', bucket)
if tonumber(redis.call('GET', 'w:epoch') or '0') ~= tonumber(ARGV[3]) or not due or tonumber(due) > now then
    return ''
end
redis.call('SELECT', app)
local page = redis.call('SCAN', ARGV[6], 'MATCH', ARGV[5], 'COUNT', ARGV[7], 'TYPE', 'hash')
for i = 1, #page[2] do
    redis.call('DEL', page[2][i])
end
if page[1] == '0' then
    redis.call('DEL', 'b:' .. bucket, 'b:' .. bucket .. ':t', 'b:' .. bucket .. ':a')
end
redis.call('SELECT', config)
if page[1] == '0' then
    redis.call('ZREM', 'w:forget', bucket)
end
return page[1]
