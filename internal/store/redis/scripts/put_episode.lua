-- Stores an episode: its ordinal, its row, the session it is of, the scope's
-- state. Of that, so is how many sessions are open and live, se is at least the last
-- ordinal of each session end, and rq is at least the ordinal of each request and the
-- ordinal up to which that holds. KEYS are state, episode, session, the counts of
-- words and the lookup, of one slot. It returns whether it is new, its ordinal or its
-- row, the state, and whether the session was not live or had ended.
local lost = refused(take())
if lost then return lost end
local flag = take()
local state, episode, session = KEYS[1], KEYS[2], KEYS[3]
local was, flat = {}, call('HGETALL', state)
for i = 1, #flat, 2 do was[flat[i]] = flat[i + 1] end
local new = not was.ed -- no episode was stored in the scope
if not new then
  local known = call('HMGET', episode, 'b', 'c', 'ord', flag)
  if known[1] then return { 0, known, flat } end
end
local arrived, live, named, embed, length, seq, request = take(), take(), take(), take(), take(), take(), take()
local member, session_token, id_token, session_member = take(), take(), take(), take()
local row, fields, place = list(), list(), list()

local last = string.format('%.0f', tonumber(was.last or '0') + 1)
for _, v in ipairs({
  'last', last, 'ed', tonumber(was.ed or '0') + 1, 'el', string.format('%.0f', tonumber(was.el or '0') + tonumber(length)),
  'seq', string.format('%.0f', math.max(tonumber(was.seq or '0'), tonumber(seq))),
}) do fields[#fields + 1] = v end

local seen = new and {} or call('HMGET', session, 'first', 'seen', 'live', 'idle')
local latest = math.max(tonumber(seen[2] or arrived), tonumber(arrived))
local alive = (seen[3] == '1' or live == '1') and '1' or '0'
local idle = (alive == '1' and named == '1') and '1' or '0'
if new or was.so then
  fields[#fields + 1] = 'so'
  fields[#fields + 1] = tonumber(was.so or '0') + tonumber(idle) - (seen[4] == '1' and 1 or 0)
end
if new and not was.ver and not was.se then
  fields[#fields + 1] = 'se'
  fields[#fields + 1] = '0'
end
local requested, upto = string.match(was.rq or '', '^(%d+):(%d+)$')
if request == '1' then
  requested = last
elseif new then
  requested = '0'
elseif upto ~= was.last then
  requested = nil -- a version without the field stored an episode in between
end
if requested then
  fields[#fields + 1] = 'rq'
  fields[#fields + 1] = requested .. ':' .. last
end
for _, v in ipairs({
  'first', seen[1] or arrived, 'seen', string.format('%.0f', latest), 'last', last, 'live', alive, 'idle', idle,
   'ended', '', 'cause', '',
}) do place[#place + 1] = v end
call('HSET', session, unpack(place))

row[#row + 1] = 'ord'
row[#row + 1] = last
if embed ~= '' then
  row[#row + 1] = flag
  row[#row + 1] = embed
end
call('HSET', episode, unpack(row))

local first, final = span()
count(KEYS[4], first, final, nil, new)

local at_ordinal = string.format('%016.0f', tonumber(last)) .. ' ' .. member
local entries = { 0, 'o' .. at_ordinal, 0, 'n' .. session_token .. ' ' .. at_ordinal, 0, 'd' .. id_token .. ' ' .. member }
if idle == '1' then
  entries[#entries + 1] = 0
  entries[#entries + 1] = 's ' .. session_member
end
call('ZADD', KEYS[5], unpack(entries))

call('HSET', state, unpack(fields))
for i = 1, #fields, 2 do was[fields[i]] = fields[i + 1] end
flat = {}
for name, value in pairs(was) do
  flat[#flat + 1] = name
  flat[#flat + 1] = tostring(value)
end
return { 1, last, flat, (idle == '1' and seen[4] ~= '1') and 1 or 0 }
