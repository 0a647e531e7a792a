-- Stores a row's vector and clears its flag, if the row is still of the revision
-- that was embedded. An empty revision means that the row has none; an empty
-- vector has no direction and is not indexed. One write, for each indexes anew.
local key, revision, vector = KEYS[1], ARGV[1], ARGV[2]
local row = redis.call('HMGET', key, 'k', 'rev')
if not row[1] then return 0 end
if revision ~= '' and row[2] ~= revision then return 0 end
if vector == '' then
  redis.call('HDEL', key, 'v')
  redis.call('HSET', key, 'q', '0')
else
  redis.call('HSET', key, 'v', vector, 'q', '0')
end
return 1
