-- Appends a rule to the list of watched rules, once, and returns the list.
local list = redis.call('LRANGE', KEYS[1], 0, -1)
for _, rule in ipairs(list) do
  if rule == ARGV[1] then return list end
end
redis.call('RPUSH', KEYS[1], ARGV[1])
list[#list + 1] = ARGV[1]
return list
