package redis

import (
	"embed"
	"strings"

	goredis "github.com/redis/go-redis/v9"
)

//go:embed scripts/*.lua
var scripts embed.FS

// script returns the script that files make together.
func script(names ...string) *goredis.Script {
	var text strings.Builder
	for _, name := range names {
		part, err := scripts.ReadFile("scripts/" + name + ".lua")
		if err != nil {
			panic(err) // the program lacks a file that it names
		}
		_, _ = text.Write(part)
	}
	return goredis.NewScript(text.String())
}

// Each script changes keys of one slot alone, all of which it gets as KEYS; outside
// of a cluster, guarded ones read the epoch record too, which is their last key.
var (
	commitScript      = script("args", "guard", "words", "commit")
	putEpisodeScript  = script("args", "guard", "words", "put_episode")
	snapshotScript    = script("snapshot")
	putVectorScript   = script("put_vector")
	takeVectorsScript = script("take_vectors")
	laterScript       = script("later")
	beginScript       = script("begin")
	epochRecordScript = script("epoch_record")
	mendedScript      = script("mended")
	leaseScript       = script("lease")
	cursorScript      = script("guard", "cursor")
	shareScript       = script("share")
	swapScript        = script("swap")
	inheritScript     = script("inherit")
)
