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

