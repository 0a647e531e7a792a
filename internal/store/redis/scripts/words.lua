-- Adds to the counts of words. A hash has room for more than one call has
-- arguments, so it is done in parts.
local function count(key, words, by)
  for from = 1, #words, 2000 do
    local part = { unpack(words, from, math.min(from + 1999, #words)) }
    local old = redis.call('HMGET', key, unpack(part))
    local set, gone = {}, {}
    for i, word in ipairs(part) do
      local n = tonumber(old[i] or '0') + (by and tonumber(by[from + i - 1]) or 1)
      if n > 0 then
        set[#set + 1] = word
        set[#set + 1] = n
      elseif old[i] then
        gone[#gone + 1] = word
      end
    end
    if #set > 0 then redis.call('HSET', key, unpack(set)) end
    if #gone > 0 then redis.call('HDEL', key, unpack(gone)) end
  end
end
