package app

import (
	"errors"

	"palimpsest/internal/embed"
	"palimpsest/internal/recovery"
	"palimpsest/internal/store"
	"palimpsest/internal/terminal"
	"palimpsest/pkg/client"
)

// Reindex gives the memory store the vectors of the configured embedder, and returns
// once they are served. Where a running Palimpsest holds the store, it does that work
// itself, and Reindex shows how far it is.
func (inv *Invocation) Reindex(data string) (out recovery.Reindexed, err error) {
	cfg, _, err := inv.Configuration(map[string]string{"data": data})
	if err != nil {
		return out, err
	}
	shown := terminal.NewProgress(inv.term.Err)
	live, err := liveOf(inv.ctx, *cfg, newLogger(cfg.Log, inv.term.Err))
	if cfg.Memory == backendFile && errors.Is(err, store.ErrLocked) {
		var c *client.Client
		if c, err = inv.Client(); err == nil {
			out, err = recovery.FollowReindex(inv.ctx, c, shown.Part)
		}
	} else if err == nil {
		var configured embed.Embedder
		if configured, err = cfg.Embedder.open(); err == nil {
			set := embedders(configured, func(e embed.Embedder) embed.Embedder { return e })
			out, err = recovery.Reindex(inv.ctx, cfg.Ingest, configured.Info(), set, live, shown.Part)
		}
		err = errors.Join(err, live.Close())
	}
	if err == nil { // a bar that has not ended would be waited for
		shown.Wait()
	}
	return out, plain(*cfg, err)
}
