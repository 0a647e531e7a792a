-- Every row of a scope's projection, in one view. KEYS are state and lookup;
-- ARGV are what begins the rows' keys, and what its entries of such rows.
local out = {}
for _, entry in ipairs(redis.call('ZRANGE', KEYS[2], '[' .. ARGV[2] .. ' ', '(' .. ARGV[2] .. '!', 'BYLEX')) do
  local m = string.sub(entry, #ARGV[2] + 2)
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
