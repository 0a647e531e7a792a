-- Reads rows of one scope in one view. KEYS[1] is the scope's lookup; ARGV are what
-- begins the rows' keys, whether to go backwards, how many entries of each part (-1
-- for all), how many fields and the fields, and then the parts: from and to.
local base, backwards, limit, n = ARGV[1], ARGV[2] == '1', ARGV[3], tonumber(ARGV[4])
local out = {}
for i = 5 + n, #ARGV, 2 do
  local found
  if backwards then
    found = redis.call('ZRANGE', KEYS[1], ARGV[i + 1], ARGV[i], 'BYLEX', 'REV', 'LIMIT', 0, limit)
  else
    found = redis.call('ZRANGE', KEYS[1], ARGV[i], ARGV[i + 1], 'BYLEX', 'LIMIT', 0, limit)
  end
  for _, entry in ipairs(found) do
    local member = string.match(entry, '[^ ]*$')
    local row = redis.call('HMGET', base .. member, unpack(ARGV, 5, 4 + n))
    if row[1] then
      out[#out + 1] = member
      out[#out + 1] = row
    end
  end
end
return out
