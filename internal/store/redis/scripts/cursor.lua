-- Sets the cursor of a reader: ARGV are the pass, the reader and its cursor.
local err = refused(ARGV[1])
if err then return err end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
return 1
