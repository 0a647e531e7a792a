package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"palimpsest/internal/embed"
	"palimpsest/internal/store"
	"palimpsest/internal/terminal"
	"palimpsest/pkg/client"
	"palimpsest/services/ingest"
)

// Reindexed is what a change of the embedder came to.
type Reindexed struct {
	From     string `json:"from"`
	To       string `json:"to"`
	Embedded uint64 `json:"embedded"` // texts, by this call
}

// reindexAgain is the pause before a look at what others do.
const reindexAgain = 250 * time.Millisecond

// Reindex gives the memory store the vectors of the configured embedder, and returns
// once they are served. Where a running Palimpsest holds the store, it does that work
// itself, and Reindex shows how far it is.
func (inv *Invocation) Reindex(data string) (out Reindexed, err error) {
	cfg, _, err := inv.Configuration(map[string]string{"data": data})
	if err != nil {
		return out, err
	}
	shown := terminal.NewProgress(inv.term.Err)
	live, err := liveOf(inv.ctx, *cfg, newLogger(cfg.Log, inv.term.Err))
	if cfg.Memory == backendFile && errors.Is(err, store.ErrLocked) {
		var c *client.Client
		if c, err = inv.Client(); err == nil {
			out, err = followReindex(inv.ctx, c, shown)
		}
	} else if err == nil {
		out, err = reindex(inv.ctx, *cfg, live, shown)
		err = errors.Join(err, live.Close())
	}
	if err == nil { // a bar that has not ended would be waited for
		shown.Wait()
	}
	return out, plain(*cfg, err)
}

// reindex begins the space of the configured embedder, or goes on with it, until it is
// served and the one before is dropped. Killed at any moment, it goes on when it is
// called again, or when Palimpsest starts with that embedder.
func reindex(ctx context.Context, cfg Config, in store.Store, shown *terminal.Progress) (out Reindexed, err error) {
	configured, err := cfg.Embedder.open()
	if err != nil {
		return out, err
	}
	out.From, out.To = in.Spaces().Served.Embedder.String(), configured.Info().String()
	if err := in.BuildSpace(ctx, configured.Info()); err != nil {
		return out, err
	}
	service, err := ingest.New(cfg.Ingest, ingest.Deps{
		Episodes: in, Cursors: in, Shares: in, Vectors: in,
		Embedders: embedders(configured, func(e embed.Embedder) embed.Embedder { return e }),
	})
	if err != nil {
		return out, err
	}
	stats, err := in.Stats(ctx)
	if err != nil {
		return out, err
	}
	step, end := shown.Part("vectors", stats.VectorsPending+stats.VectorsBuilding)
	defer end()
	tick := time.NewTicker(reindexAgain)
	defer tick.Stop()
	nothing := func(context.Context) error { return nil } // to settle
	for {
		if err := service.EmbedAll(ctx, nothing, func(n int) { out.Embedded += uint64(n); step(n) }); err != nil {
			return out, err
		}
		if done, err := in.MoveSpaces(ctx); done || err != nil {
			return out, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return out, ctx.Err()
		}
	}
}

// followReindex shows how far a running Palimpsest is.
func followReindex(ctx context.Context, c *client.Client, shown *terminal.Progress) (out Reindexed, err error) {
	tick := time.NewTicker(reindexAgain)
	defer tick.Stop()
	var step func(int)
	last := uint64(0)
	for {
		ready, err := c.Ready(ctx)
		details := ready.Checks["memory"].Details
		if details == nil {
			return out, errors.Join(err, fmt.Errorf("the running Palimpsest does not tell how its memory store is: %s", ready.Checks["memory"].Error))
		}
		served, _ := details["vectors"].(string)
		building, _ := details["vectors_building"].(string)
		pending, _ := details["vectors_building_pending"].(float64)
		if out.From == "" {
			var end func()
			out.From, last = served, uint64(pending)
			step, end = shown.Part("vectors", last)
			defer end()
		}
		if left := uint64(pending); left < last {
			step(int(last - left))
			last = left
		}
		if out.To = served; building == "" {
			return out, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return out, ctx.Err()
		}
	}
}
