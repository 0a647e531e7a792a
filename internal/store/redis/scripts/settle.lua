-- Brings the tags of the rules that the scope is pending for up to date: those
-- whose watermark is below its last ordinal. watch numbers the list of rules, so
-- that a row written by one who knew fewer of them is found and settled again.
local function settle(state, watch, rules)
  local last = tonumber(redis.call('HGET', state, 'last') or '0')
  local pending = {}
  for i = 1, #rules, 2 do
    local mark = tonumber(redis.call('HGET', state, 'w:' .. rules[i]) or '0')
    if mark < last then pending[#pending + 1] = rules[i + 1] end
  end
  local tags = table.concat(pending, ',')
  local old = redis.call('HMGET', state, 'pend', 'watch')
  if old[1] ~= tags or old[2] ~= watch then
    redis.call('HSET', state, 'pend', tags, 'watch', watch)
  end
end

local at = 0
local function take()
  at = at + 1
  return ARGV[at]
end
local function list()
  local n = tonumber(take())
  local out = {}
  for i = 1, n do out[i] = take() end
  return out
end
