-- Reads rows of one scope in one view. KEYS[1] is the scope's lookup; ARGV are what
-- begins the rows' keys, how many fields and the fields, and then the parts: from and
-- to. An edge is a string, which stands for its only field.
local base, n = ARGV[1], tonumber(ARGV[2])
local out = {}
for i = 3 + n, #ARGV, 2 do
  for _, entry in ipairs(redis.call('ZRANGE', KEYS[1], ARGV[i], ARGV[i + 1], 'BYLEX')) do
    local member = string.match(entry, '[^ ]*$')
    local row
    if string.sub(member, 1, 2) == 'g:' then
      row = { redis.call('GET', base .. member) }
    else
      row = redis.call('HMGET', base .. member, unpack(ARGV, 3, 2 + n))
    end
    if row[1] then
      out[#out + 1] = member
      out[#out + 1] = row
    end
  end
end
return out
