package app

import (
	"sync"

	"palimpsest/internal/embed"
	"palimpsest/internal/embed/local"
	"palimpsest/internal/embed/static"
)

// embedders returns the set of those that this process can make: the configured one,
// and those of this program, in whose space an earlier configuration may have left
// vectors. Each comes through wrap.
func embedders(configured embed.Embedder, wrap func(embed.Embedder) embed.Embedder) embed.Set {
	var mu sync.Mutex
	made := []embed.Embedder{wrap(configured)}
	return func(space embed.Info) embed.Embedder {
		mu.Lock()
		defer mu.Unlock()
		for _, e := range made {
			if e.Info().Same(space) {
				return e
			}
		}
		if e := ownEmbedder(space); e != nil {
			made = append(made, wrap(e))
			return made[len(made)-1]
		}
		return nil
	}
}

// ownEmbedder makes one of this program's embedders, nil if none has the space.
func ownEmbedder(space embed.Info) embed.Embedder {
	if e := local.New(); e.Info().Same(space) {
		return e
	}
	if space.Name != modelStatic {
		return nil
	}
	if e, err := ownTable(); err == nil && e.Info().Same(space) {
		return e
	}
	if e, err := static.New(); err == nil && e.Info().Same(space) { // that of version 0.1.0
		return e
	}
	return nil
}
