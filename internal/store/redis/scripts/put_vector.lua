-- Stores a row's vector and clears its flag, or keeps why the row has none, if the
-- row is still of the revision that was to be embedded. An empty revision means that
-- the row has none; an empty vector has no direction and is not indexed. One write,
-- for each indexes anew. It returns what the flag was.
local key, revision, vector, refused = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local row = redis.call('HMGET', key, 'k', 'rev', 'q')
if not row[1] then return '' end
if revision ~= '' and row[2] ~= revision then return '' end
if refused then
  redis.call('HSET', key, 'q', '-1', 'why', refused)
elseif vector == '' then
  redis.call('HDEL', key, 'v')
  redis.call('HSET', key, 'q', '0')
else
  redis.call('HSET', key, 'v', vector, 'q', '0')
end
return row[3] or ''
