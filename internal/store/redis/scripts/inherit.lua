-- Gives a fact the statistics of its accesses, if it is still of the revision that
-- was read. ARGV are the revision and the fields.
if redis.call('HGET', KEYS[1], 'rev') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV, 2))
return 1
