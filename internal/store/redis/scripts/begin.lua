-- Creates the epoch record of an empty namespace. ARGV are epoch, generation and the run
-- ids of the servers.
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('HSET', KEYS[1], 'era', ARGV[1], 'generation', ARGV[2], 'runs', ARGV[3])
end
return redis.call('HGETALL', KEYS[1])
