-- Records that a data folder is closed, so that nobody waits for it to tell its number. ARGV: number of queueDB,
-- folder. Answers the folder's number; nil: the store does not know the folder.
redis.call('SELECT', ARGV[1])
local row = redis.call('HGET', 'w:seen', ARGV[2])
if row then
    redis.call('HSET', 'w:seen', ARGV[2], (string.gsub(row, 'o$', 'c')))
end
return row and string.match(row, '^%d+')
