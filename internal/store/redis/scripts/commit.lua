-- Runs a list of commands over keys of one scope if every guard holds: a field
-- of a row, or its absence as the empty string, is still what the caller read.
-- ROW is HSET of a row with the fields that all rows of the scope have in common,
-- which come before the commands. Then come the counts of words: their key, the
-- words, whether there are none yet, and by how much each changes (nothing for 1
-- each); then the fields of the state.
local lost = refused(take())
if lost then return lost end
local names, wanted = {}, {}
for _ = 1, tonumber(take()) do
  local key, field, want = KEYS[tonumber(take())], take(), take()
  if key == KEYS[1] then
    names[#names + 1] = field
    wanted[#wanted + 1] = want
  elseif (call('HGET', key, field) or '') ~= want then
    return 0
  end
end
if #names > 0 then
  for i, v in ipairs(call('HMGET', KEYS[1], unpack(names))) do
    if (v or '') ~= wanted[i] then return 0 end
  end
end
local a, b, c, d, e, f, g, h, i, j, k, l = unpack(argv, span())
for _ = 1, tonumber(take()) do
  local name, key = take(), KEYS[tonumber(take())]
  if name == 'ROW' then
    call('HSET', key, a, b, c, d, e, f, g, h, i, j, k, l, unpack(argv, span()))
  else
    call(name, key, unpack(argv, span()))
  end
end
local words = tonumber(take())
if words > 0 then
  local first, final = span()
  local none = take() == '1'
  local by, last = span()
  count(KEYS[words], first, final, by <= last and by or nil, none)
end
local first, final = span()
if first <= final then call('HSET', KEYS[1], unpack(argv, first, final)) end
return 1
