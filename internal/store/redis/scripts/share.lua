-- Divides readers among processes. ARGV are the process, its time to live in
-- milliseconds and the readers. The hash has p:{process} to the end of its life,
-- and r:{reader} to its process. It returns the readers of the process.
local process, ttl = ARGV[1], tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local all = redis.call('HGETALL', KEYS[1])
local alive, owner, count = {}, {}, 0
for i = 1, #all, 2 do
  local kind, name = string.sub(all[i], 1, 2), string.sub(all[i], 3)
  if kind == 'r:' then
    owner[name] = all[i + 1]
  elseif name ~= process then
    if tonumber(all[i + 1]) > now then
      alive[name], count = true, count + 1
    else
      redis.call('HDEL', KEYS[1], all[i])
    end
  end
end
if ttl <= 0 then
  redis.call('HDEL', KEYS[1], 'p:' .. process)
  return {}
end
local set = {'p:' .. process, string.format('%.0f', now + ttl)}
local share = math.ceil((#ARGV - 2) / (count + 1))
local mine, free, released = {}, {}, {}
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
redis.call('HSET', KEYS[1], unpack(set))
return mine
