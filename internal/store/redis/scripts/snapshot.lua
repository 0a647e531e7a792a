-- Every row of a scope's projection, in one view. KEYS are state and members;
-- ARGV[1] begins the rows' keys.
local out = {}
for _, m in ipairs(redis.call('SMEMBERS', KEYS[2])) do
  local key = ARGV[1] .. m
  local body
  if string.sub(m, 1, 2) == 'g:' then
    body = redis.call('GET', key)
  else
    body = redis.call('HGET', key, 'b')
  end
  if body then
    out[#out + 1] = m
    out[#out + 1] = body
  end
end
return { redis.call('HGETALL', KEYS[1]), out }
