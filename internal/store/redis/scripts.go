package redis

import (
	_ "embed" // the scripts are files

	goredis "github.com/redis/go-redis/v9"
)

var (
	//go:embed scripts/args.lua
	argsLua string
	//go:embed scripts/commit.lua
	commitLua string
	//go:embed scripts/put_episode.lua
	putEpisodeLua string
	//go:embed scripts/snapshot.lua
	snapshotLua string
	//go:embed scripts/put_vector.lua
	putVectorLua string
	//go:embed scripts/take_vectors.lua
	takeVectorsLua string
	//go:embed scripts/later.lua
	laterLua string
	//go:embed scripts/words.lua
	wordsLua string
	//go:embed scripts/guard.lua
	guardLua string
	//go:embed scripts/begin.lua
	beginLua string
	//go:embed scripts/epoch_record.lua
	epochRecordLua string
	//go:embed scripts/mended.lua
	mendedLua string
	//go:embed scripts/promote.lua
	promoteLua string
	//go:embed scripts/inherit.lua
	inheritLua string
	//go:embed scripts/lease.lua
	leaseLua string
	//go:embed scripts/cursor.lua
	cursorLua string
	//go:embed scripts/swap.lua
	swapLua string
	//go:embed scripts/share.lua
	shareLua string
)

// Each script changes keys of one slot alone, all of which it gets as KEYS; outside
// of a cluster, guarded ones read the epoch record too, which is their last key.
var (
	commitScript      = goredis.NewScript(argsLua + guardLua + wordsLua + commitLua)
	putEpisodeScript  = goredis.NewScript(argsLua + guardLua + wordsLua + putEpisodeLua)
	snapshotScript    = goredis.NewScript(snapshotLua)
	putVectorScript   = goredis.NewScript(putVectorLua)
	takeVectorsScript = goredis.NewScript(takeVectorsLua)
	laterScript       = goredis.NewScript(laterLua)
	beginScript       = goredis.NewScript(beginLua)
	epochRecordScript = goredis.NewScript(epochRecordLua)
	mendedScript      = goredis.NewScript(mendedLua)
	promoteScript     = goredis.NewScript(promoteLua)
	leaseScript       = goredis.NewScript(leaseLua)
	cursorScript      = goredis.NewScript(guardLua + cursorLua)
	shareScript       = goredis.NewScript(shareLua)
	swapScript        = goredis.NewScript(swapLua)
	inheritScript     = goredis.NewScript(inheritLua)
)
