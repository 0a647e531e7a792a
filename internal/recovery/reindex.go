package recovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"palimpsest/internal/embed"
	"palimpsest/internal/poll"
	"palimpsest/internal/store"
	"palimpsest/pkg/client"
	"palimpsest/services/ingest"
)

// Part begins a part of the work of about total units. step counts some of them; end
// says that there are no more.
type Part = func(name string, total uint64) (step func(n int), end func())

// Reindexed is what a change of the embedder came to.
type Reindexed struct {
	From     string `json:"from"`
	To       string `json:"to"`
	Embedded uint64 `json:"embedded"` // texts, by this call
}

// reindexAgain is the pause before a look at what others do.
const reindexAgain = 250 * time.Millisecond

// Reindex begins the space of the configured embedder, or goes on with it, until it is
// served and the one before is dropped. Killed at any moment, it goes on when it is
// called again, or when Palimpsest starts with that embedder. embedders can make the
// configured one.
func Reindex(ctx context.Context, cfg ingest.Config, configured embed.Info, embedders embed.Set, in store.Store, shown Part) (out Reindexed, err error) {
	out.From, out.To = in.Spaces().Served.Embedder.String(), configured.String()
	if err := in.BuildSpace(ctx, configured); err != nil {
		return out, err
	}
	service, err := ingest.New(cfg, ingest.Deps{Episodes: in, Cursors: in, Shares: in, Vectors: in, Embedders: embedders})
	if err != nil {
		return out, err
	}
	stats, err := in.Stats(ctx)
	if err != nil {
		return out, err
	}
	step, end := shown("vectors", stats.VectorsPending+stats.VectorsBuilding)
	defer end()
	nothing := func(context.Context) error { return nil } // to settle
	err = poll.Until(ctx, reindexAgain, func() (bool, error) {
		if err := service.EmbedAll(ctx, nothing, func(n int) { out.Embedded += uint64(n); step(n) }); err != nil {
			return false, err
		}
		return in.MoveSpaces(ctx)
	})
	return out, err
}

// FollowReindex shows how far a running Palimpsest is, until it has only one space.
func FollowReindex(ctx context.Context, c *client.Client, shown Part) (out Reindexed, err error) {
	var step func(int)
	end, last := func() {}, uint64(0)
	defer func() { end() }()
	err = poll.Until(ctx, reindexAgain, func() (bool, error) {
		ready, err := c.Ready(ctx)
		details := ready.Checks["memory"].Details
		if details == nil {
			return false, errors.Join(err, fmt.Errorf("the running Palimpsest does not tell how its memory store is: %s", ready.Checks["memory"].Error))
		}
		served, _ := details["vectors"].(string)
		building, _ := details["vectors_building"].(string)
		pending, _ := details["vectors_building_pending"].(float64)
		if out.From == "" {
			out.From, last = served, uint64(pending)
			step, end = shown("vectors", last)
		}
		if left := uint64(pending); left < last {
			step(int(last - left))
			last = left
		}
		out.To = served
		return building == "", nil
	})
	return out, err
}
