package redis

import (
	_ "embed" // the scripts are files

	goredis "github.com/redis/go-redis/v9"
)

var (
	//go:embed scripts/settle.lua
	settleLua string
	//go:embed scripts/commit.lua
	commitLua string
	//go:embed scripts/put_episode.lua
	putEpisodeLua string
	//go:embed scripts/snapshot.lua
	snapshotLua string
	//go:embed scripts/put_vector.lua
	putVectorLua string
	//go:embed scripts/later.lua
	laterLua string
	//go:embed scripts/watch.lua
	watchLua string
)

// Each script changes keys of one slot alone, all of which it is told.
var (
	commitScript     = goredis.NewScript(settleLua + commitLua)
	putEpisodeScript = goredis.NewScript(settleLua + putEpisodeLua)
	snapshotScript   = goredis.NewScript(snapshotLua)
	putVectorScript  = goredis.NewScript(putVectorLua)
	laterScript      = goredis.NewScript(laterLua)
	watchScript      = goredis.NewScript(watchLua)
)
