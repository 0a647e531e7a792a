-- Stores the vectors of rows and clears their flags, or keeps why a row has none.
-- KEYS are the rows; ARGV are the fields of the space (vector, flag, reason) and what
-- an absent flag reads as; then, for each row, the revision that was embedded (empty for a
-- row without revisions), the vector (empty for one without direction, which is not
-- indexed) and the reason behind a colon (empty where there is a vector). A row of
-- another revision stays as it is, and one that is not pending is not refused. Each
-- row is written once, since each write indexes it anew. It returns what the flags
-- were of the rows that changed.
local flags, of_vector, of_flag, of_reason, absent = {}, ARGV[1], ARGV[2], ARGV[3], ARGV[4]
for i, key in ipairs(KEYS) do
  local revision, vector, reason = ARGV[3 * i + 2], ARGV[3 * i + 3], ARGV[3 * i + 4]
  local row = redis.call('HMGET', key, 'k', 'rev', of_flag)
  local was = row[3] or absent
  local flag = tonumber(was) or 0
  if not row[1] or (revision ~= '' and row[2] ~= revision) or (reason ~= '' and flag <= 0) then
    flags[i] = ''
  else
    flags[i] = was
    if reason ~= '' then
      redis.call('HSET', key, of_flag, '-1', of_reason, string.sub(reason, 2))
    elseif vector == '' then
      redis.call('HDEL', key, of_vector)
      redis.call('HSET', key, of_flag, '0')
    else
      redis.call('HSET', key, of_vector, vector, of_flag, '0')
    end
  end
end
return flags
