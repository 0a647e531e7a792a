-- Stores an episode: its ordinal, its row, the session it is of, the scope's
-- state. KEYS are state, episode, session and the counts of words, of one slot.
local lost = refused(take())
if lost then return lost end
local state, episode, session = KEYS[1], KEYS[2], KEYS[3]
if redis.call('EXISTS', episode) == 1 then
  return { 0, redis.call('HMGET', episode, 'b', 'c', 'ord'), redis.call('HGETALL', state) }
end
local arrived, live, named, embed, length, seq = take(), take(), take(), take(), take(), take()
local row = list()

local old = redis.call('HMGET', state, 'last', 'ed', 'el', 'seq')
local last = string.format('%.0f', tonumber(old[1] or '0') + 1)
local fresh = list()
for _, v in ipairs({
  'last', last, 'ed', (tonumber(old[2] or '0') + 1), 'el', string.format('%.0f', tonumber(old[3] or '0') + tonumber(length)),
  'seq', string.format('%.0f', math.max(tonumber(old[4] or '0'), tonumber(seq))),
}) do fresh[#fresh + 1] = v end
redis.call('HSET', state, unpack(fresh))

local seen = redis.call('HMGET', session, 'first', 'seen', 'live')
local place = list()
local latest = math.max(tonumber(seen[2] or arrived), tonumber(arrived))
local alive = (seen[3] == '1' or live == '1') and '1' or '0'
for _, v in ipairs({
  'first', seen[1] or arrived, 'seen', string.format('%.0f', latest), 'last', last, 'live', alive, 'open', named,
  'idle', (alive == '1' and named == '1') and '1' or '0', 'ended', '', 'cause', '',
}) do place[#place + 1] = v end
redis.call('HSET', session, unpack(place))

row[#row + 1] = 'ord'
row[#row + 1] = last
if embed == '1' then
  local now = redis.call('TIME')
  row[#row + 1] = 'q'
  row[#row + 1] = string.format('%s%06d', now[1], now[2])
end
redis.call('HSET', episode, unpack(row))

count(KEYS[4], list())

local watch = take()
settle(state, watch, list())
return { 1, last, redis.call('HGETALL', state) }
