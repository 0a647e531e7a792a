-- Reads the epoch record, and declares that the store lost something where it did: a
-- server takes part that did not when the store was last whole, or the epoch record is
-- neither the one that the caller knows nor the one after it. KEYS[1] is the
-- epoch record; ARGV are a new token, what the caller knows (its epoch, empty for none,
-- whether it was whole then, and its generation) and the run ids of servers.
local w = redis.call('HMGET', KEYS[1], 'era', 'parent', 'lost', 'runs', 'seen')
local era, parent, lost, runs, seen = w[1] or '', w[2] or '', w[3] or '', w[4] or '', w[5] or ''
local token, known, whole, generation = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if era == '' and known == '' then return {} end
local strange = era == ''
if known ~= '' and lost == '' then
  if whole == '1' then
    strange = era ~= known and parent ~= known
  else
    strange = parent == '' -- one that was never mended is of a server that began anew
  end
end
for i = 5, #ARGV do
  local id = ARGV[i]
  if not string.find(runs, id, 1, true) and not (lost ~= '' and string.find(seen, id, 1, true)) then
    strange = true
    seen = seen .. id .. ','
  end
end
if strange then
  if era == '' then redis.call('HSET', KEYS[1], 'era', known, 'generation', generation) end
  redis.call('HSET', KEYS[1], 'lost', token, 'mended', '', 'seen', seen)
end
return redis.call('HGETALL', KEYS[1])
