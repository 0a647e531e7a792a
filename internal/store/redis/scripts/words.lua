-- Adds to the counts of words, which are arguments from first to final, what the
-- arguments from by on say; 1 each where by is nil. none says that there are no
-- counts yet. A hash has room for more than one call has arguments, so it is done in
-- parts.
local function count(key, first, final, by, none)
  for from = first, final, 2000 do
    local to = math.min(from + 1999, final)
    local old = none and {} or call('HMGET', key, unpack(argv, from, to))
    local set, gone = {}, {}
    for i = 1, to - from + 1 do
      local word = argv[from + i - 1]
      local n = tonumber(old[i] or '0') + (by and tonumber(argv[by + from - first + i - 1]) or 1)
      if n > 0 then
        set[#set + 1] = word
        set[#set + 1] = n
      elseif old[i] then
        gone[#gone + 1] = word
      end
    end
    if #set > 0 then call('HSET', key, unpack(set)) end
    if #gone > 0 then call('HDEL', key, unpack(gone)) end
  end
end
