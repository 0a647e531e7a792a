-- Sets an instant unless a later one stands.
local old = redis.call('GET', KEYS[1])
if not old or tonumber(old) < tonumber(ARGV[1]) then redis.call('SET', KEYS[1], ARGV[1]) end
return 1
