-- Makes a generation the one in use, as a store that lacks what came while it was
-- built. ARGV are the generation and the token of that loss.
redis.call('HSET', KEYS[1], 'generation', ARGV[1], 'lost', ARGV[2], 'mended', '', 'seen', '')
return 1
