-- Records that a part was put back, unless something was lost meanwhile. ARGV are
-- the token of the loss and the part; for the last one also the new epoch and the
-- run ids of the servers.
if redis.call('HGET', KEYS[1], 'lost') ~= ARGV[1] then return 0 end
if not ARGV[3] then
  redis.call('HSET', KEYS[1], 'mended', ARGV[2])
  return 1
end
local era = redis.call('HGET', KEYS[1], 'era')
redis.call('HSET', KEYS[1], 'parent', era, 'era', ARGV[3], 'runs', ARGV[4], 'lost', '', 'mended', '', 'seen', '')
return 1
