-- Stores the vectors of rows and clears their flags, or keeps why a row has none.
-- KEYS are the rows; ARGV are, for each, the revision that was embedded (empty for a
-- row without revisions), the vector (empty for one without direction, which is not
-- indexed) and the reason behind a colon (empty where there is a vector). A row of
-- another revision stays as it is, and one that is not pending is not refused. Each
-- row is written once, since each write indexes it anew. It returns what the flags
-- were of the rows that changed.
local flags = {}
for i, key in ipairs(KEYS) do
  local revision, vector, reason = ARGV[3 * i - 2], ARGV[3 * i - 1], ARGV[3 * i]
  local row = redis.call('HMGET', key, 'k', 'rev', 'q')
  local flag = tonumber(row[3] or '0')
  if not row[1] or (revision ~= '' and row[2] ~= revision) or (reason ~= '' and flag <= 0) then
    flags[i] = ''
  else
    flags[i] = row[3] or ''
    if reason ~= '' then
      redis.call('HSET', key, 'q', '-1', 'why', string.sub(reason, 2))
    elseif vector == '' then
      redis.call('HDEL', key, 'v')
      redis.call('HSET', key, 'q', '0')
    else
      redis.call('HSET', key, 'v', vector, 'q', '0')
    end
  end
end
return flags
