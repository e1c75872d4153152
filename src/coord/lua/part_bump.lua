-- bump() sets the field to one more than the highest number of the vector (docs/replication.md, V1). A vector that was
-- to expire does not expire any more (V3). `others` are the other fields that the vector may have, or nil. All fields
-- are read only if the vector has more fields than these. Returns the new number, and how many fields the vector had.
local function bump(key, field, others)
    local count, known, highest = redis.call('HLEN', key), 0, 0
    if count == 0 then -- in a large batch most objects are new
        redis.call('HSET', key, field, '1')
        return 1, 0
    end
    local numbers = others and redis.call('HMGET', key, field, unpack(others)) or {}
    for i = 1, others and #others + 1 or 0 do
        known = known + (numbers[i] and 1 or 0)
    end
    if known ~= count then
        numbers = redis.call('HVALS', key)
    end
    for _, number in pairs(numbers) do
        highest = math.max(highest, tonumber(number or '0'))
    end
    redis.call('HSET', key, field, highest + 1)
    redis.call('PERSIST', key)
    return highest + 1, count
end
-- bump_whole() raises the vector of an object that was written as a whole, and the vectors of its tags and its ACL if
-- they exist. Tags and ACL have vectors of their own only after they were changed by themselves, and never without a
-- vector of the object (docs/replication.md, V5).
local function bump_whole(key, field, others)
    local _, count = bump(key, field, others)
    if count > 0 and redis.call('EXISTS', key .. ':t', key .. ':a') > 0 then
        for _, with in ipairs({':t', ':a'}) do
            if redis.call('EXISTS', key .. with) == 1 then
                bump(key .. with, field)
            end
        end
    end
end
-- bump_beside() raises the vector of an object's tags or ACL, and makes the object's vector if there is none (V5).
local function bump_beside(key, field, others)
    bump(key, field, others)
    local object = string.sub(key, 1, -3)
    if redis.call('EXISTS', object) == 0 then
        redis.call('HSET', object, field, 0)
    end
    redis.call('PERSIST', object)
end
