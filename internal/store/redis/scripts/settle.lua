local argv, call = ARGV, redis.call
local at = 0
local function take()
  at = at + 1
  return argv[at]
end
-- span is where a list of arguments begins and ends; its length stands before it.
local function span()
  local first = at + 2
  at = at + 1 + tonumber(argv[at + 1])
  return first, at
end
local function list() return { unpack(argv, span()) } end

-- Writes fields of a scope's state, and with them the tags of the rules that the
-- scope is pending for: those whose watermark is below its last ordinal. watch
-- numbers the list of rules, so that a row written by one who knew fewer of them is
-- found and settled again. old is what the state held of settled(rules). It is one
-- write, since each indexes the row anew.
local function settled(rules)
  local names = { 'pend', 'watch', 'last' }
  for i = 1, #rules, 2 do names[#names + 1] = 'w:' .. rules[i] end
  return names
end
local function settle(state, fields, watch, rules, old)
  local new = {}
  for i = 1, #fields, 2 do new[fields[i]] = fields[i + 1] end
  local function number(name) return tonumber(new[name] or old[name] or '0') end
  local last, pending = number('last'), {}
  for i = 1, #rules, 2 do
    if number('w:' .. rules[i]) < last then pending[#pending + 1] = rules[i + 1] end
  end
  local tags = table.concat(pending, ',')
  if old.pend ~= tags or old.watch ~= watch then
    for _, v in ipairs({ 'pend', tags, 'watch', watch }) do fields[#fields + 1] = v end
  end
  if #fields > 0 then call('HSET', state, unpack(fields)) end
end
