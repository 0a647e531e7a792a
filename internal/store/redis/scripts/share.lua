-- Divides readers among processes. ARGV are the process, its life in seconds and
-- the readers. The hash
-- has p:{process} of each that is alive, which ends by itself, and r:{reader} of its
-- process. It returns the readers of the process.
local process = ARGV[1]
redis.call('HSET', KEYS[1], 'p:' .. process, '1')
redis.call('HEXPIRE', KEYS[1], ARGV[2], 'FIELDS', 1, 'p:' .. process)
local all = redis.call('HGETALL', KEYS[1])
local alive, owner, count = {}, {}, 0
for i = 1, #all, 2 do
  local kind, name = string.sub(all[i], 1, 2), string.sub(all[i], 3)
  if kind == 'r:' then
    owner[name] = all[i + 1]
  elseif name ~= process then
    alive[name], count = true, count + 1
  end
end
local share = math.ceil((#ARGV - 2) / (count + 1))
local mine, free, set, released = {}, {}, {}, {}
for i = 3, #ARGV do
  local of = owner[ARGV[i]]
  if of == process then
    if #mine < share then mine[#mine + 1] = ARGV[i] else released[#released + 1] = 'r:' .. ARGV[i] end
  elseif not of or not alive[of] then
    free[#free + 1] = ARGV[i]
  end
end
for _, name in ipairs(free) do
  if #mine >= share then break end
  mine[#mine + 1] = name
  set[#set + 1], set[#set + 2] = 'r:' .. name, process
end
if #released > 0 then redis.call('HDEL', KEYS[1], unpack(released)) end
if #set > 0 then redis.call('HSET', KEYS[1], unpack(set)) end
return mine
