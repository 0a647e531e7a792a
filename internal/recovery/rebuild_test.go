package recovery

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"palimpsest/internal/embed"
	"palimpsest/internal/embed/local"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/store"
	"palimpsest/internal/store/sqlite"
	"palimpsest/internal/testengine/brokertest"
	"palimpsest/internal/topology"
)

// TestRebuildWithoutADraft returns the error of a draft that cannot be opened, as where
// another rebuild is running.
func TestRebuildWithoutADraft(t *testing.T) {
	t.Parallel()
	js := brokertest.Start(t).JS
	extent := func(stream, service string) *pipeline.Replay { return pipeline.NewReplay(js, stream, service) }
	_, err := New(Inputs{
		Repair: Repair{
			Episodes: extent(topology.StreamEpisodes, "ingest"), Effects: extent(topology.StreamAudit, "consolidator"),
			Embedder: local.New(), Logger: slog.New(slog.DiscardHandler),
		},
		Live: func(context.Context) (store.Store, error) { return nil, ErrAbsent },
		Begin: func(context.Context, embed.Info) (Draft, error) {
			return (*sqlite.Store)(nil), store.ErrLocked // as a backend's Open returns them
		},
	}).Run(t.Context(), Mode{})
	if !errors.Is(err, store.ErrLocked) {
		t.Errorf("%v, want %v", err, store.ErrLocked)
	}
}
