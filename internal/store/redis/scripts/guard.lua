-- A write counts on what is there, so it names the epoch in which that was whole, or
-- the loss that it mends; the epoch record is its last key. It names nothing where there
-- is no epoch record to ask: in a cluster, whose scripts keep to one slot, and in a
-- generation under construction.
local function refused(pass)
  if pass == '' then return nil end
  local w = redis.call('HMGET', KEYS[#KEYS], 'era', 'lost')
  if w[2] == pass or (w[1] == pass and (w[2] or '') == '') then return nil end
  return redis.error_reply('LOST acknowledged writes may be missing')
end
