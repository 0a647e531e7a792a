-- Lists entries of the texts to embed in a space, which are a part of KEYS[1]. An entry
-- begins with the space and its group: its partition and its project. ARGV are how many
-- to list, how entries of the space begin, the group behind which to begin, and the
-- partitions whose entries count. Each project has as many as another. The first of the
-- list is the group behind which the next call is to begin. Entries of another form are
-- listed too.
local limit, space, last, mine, unknown = tonumber(ARGV[1]), ARGV[2], ARGV[3], {}, {}
for i = 4, #ARGV do mine[ARGV[i]] = true end

local function entries(from, to, most)
  return redis.call('ZRANGE', KEYS[1], from, to, 'BYLEX', 'LIMIT', 0, most)
end

local function groups(behind)
  local list, from = {}, '[' .. space
  if behind ~= '' then from = '(' .. behind .. '\255' end
  while #list < limit do
    local first = entries(from, '(' .. space .. '\255', 1)[1]
    if not first then break end
    local partition, project = string.match(first, '^%S+ (%S+) (%S+) ')
    if not partition then
      unknown[#unknown + 1] = first
      from = '(' .. first
      if #unknown == limit then break end
    elseif mine[partition] then
      list[#list + 1] = { of = space .. partition .. ' ' .. project .. ' ', project = project }
      from = '(' .. list[#list].of .. '\255'
    else
      from = '(' .. space .. partition .. ' \255'
    end
  end
  return list
end

local turns = groups(last)
if #turns == 0 and last ~= '' then turns = groups('') end
local projects, partitions = 0, {}
for _, group in ipairs(turns) do
  local known = partitions[group.project]
  if not known then projects = projects + 1 end
  partitions[group.project] = (known or 0) + 1
end
local out = { #turns == limit and turns[limit].of or '' }
if #unknown > 0 then return { last, unpack(unknown) } end
for _, group in ipairs(turns) do
  local most = math.max(1, math.floor(limit / projects / partitions[group.project]))
  for _, entry in ipairs(entries('[' .. group.of, '(' .. group.of .. '\255', most)) do
    if #out > limit then return out end
    out[#out + 1] = entry
    if #out > limit then out[1] = group.of end
  end
end
return out
