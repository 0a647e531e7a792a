-- Reads rows of one scope in one view. KEYS[1] is the scope's lookup; ARGV are what
-- begins the rows' keys, how many fields and the fields, and then the parts: from and
-- to. Before several parts comes one that has all their entries, each part being the
-- entries of one value. Where that one is short, it is read in their place. An edge is
-- a string, which stands for its only field.
local base, n, most = ARGV[1], tonumber(ARGV[2]), 512
local first = 3 + n

local function entries(from, to, limit)
  return redis.call('ZRANGE', KEYS[1], from, to, 'BYLEX', 'LIMIT', 0, limit)
end

local found
if #ARGV > first + 1 then
  local all = entries(ARGV[first], ARGV[first + 1], most)
  first = first + 2
  if #all < most then
    found = {}
    for _, entry in ipairs(all) do
      local value = '[' .. string.match(entry, '^[^ ]* ')
      found[value] = found[value] or {}
      table.insert(found[value], entry)
    end
  end
end

local out = {}
for i = first, #ARGV, 2 do
  for _, entry in ipairs(found and (found[ARGV[i]] or {}) or entries(ARGV[i], ARGV[i + 1], -1)) do
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
