-- Runs a list of commands over keys of one scope if every guard holds: a field
-- of a row, or its absence as the empty string, is still what the caller read.
-- Then come the counts of words: their key, the words, and by how much each changes.
local lost = refused(take())
if lost then return lost end
for _ = 1, tonumber(take()) do
  local key, field, want = KEYS[tonumber(take())], take(), take()
  if (redis.call('HGET', key, field) or '') ~= want then return 0 end
end
for _ = 1, tonumber(take()) do
  local name, key = take(), KEYS[tonumber(take())]
  redis.call(name, key, unpack(list()))
end
local words = tonumber(take())
if words > 0 then count(KEYS[words], list(), list()) end
local watch = take()
settle(KEYS[1], watch, list())
return 1
