-- Sets the cursor of a reader, unless the stored one is below what the caller knows.
-- ARGV are the pass, the reader, the least sequence and the cursor.
local err = refused(ARGV[1])
if err then return err end
local least = tonumber(ARGV[3])
if least > 0 then
  local stored = redis.call('HGET', KEYS[1], ARGV[2])
  if not stored or cjson.decode(stored).sequence < least then return 0 end
end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[4])
return 1
