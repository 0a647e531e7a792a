-- Stores an episode: its ordinal, its row, the session it is of, the scope's
-- state. KEYS are state, episode, session and the counts of words, of one slot.
local lost = refused(take())
if lost then return lost end
local state, episode, session = KEYS[1], KEYS[2], KEYS[3]
if call('EXISTS', episode) == 1 then
  return { 0, call('HMGET', episode, 'b', 'c', 'ord'), call('HGETALL', state) }
end
local arrived, live, named, embed, length, seq = take(), take(), take(), take(), take(), take()
local row, fields, place = list(), list(), list()

local old = call('HMGET', state, 'last', 'ed', 'el', 'seq')
local last = string.format('%.0f', tonumber(old[1] or '0') + 1)
for _, v in ipairs({
  'last', last, 'ed', tonumber(old[2] or '0') + 1, 'el', string.format('%.0f', tonumber(old[3] or '0') + tonumber(length)),
  'seq', string.format('%.0f', math.max(tonumber(old[4] or '0'), tonumber(seq))),
}) do fields[#fields + 1] = v end

local seen = call('HMGET', session, 'first', 'seen', 'live')
local latest = math.max(tonumber(seen[2] or arrived), tonumber(arrived))
local alive = (seen[3] == '1' or live == '1') and '1' or '0'
for _, v in ipairs({
  'first', seen[1] or arrived, 'seen', string.format('%.0f', latest), 'last', last, 'live', alive, 'open', named,
  'idle', (alive == '1' and named == '1') and '1' or '0', 'ended', '', 'cause', '',
}) do place[#place + 1] = v end
call('HSET', session, unpack(place))

row[#row + 1] = 'ord'
row[#row + 1] = last
if embed == '1' then
  local now = call('TIME')
  row[#row + 1] = 'q'
  row[#row + 1] = string.format('%s%06d', now[1], now[2])
end
call('HSET', episode, unpack(row))

count(KEYS[4], span())

local watch = take()
settle(state, fields, watch, list())
return { 1, last, call('HGETALL', state) }
