package recovery

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"palimpsest/internal/audit"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/store"
	"palimpsest/internal/testengine/brokertest"
	"palimpsest/internal/topology"
)

func TestIntact(t *testing.T) {
	t.Parallel()
	at := func(held uint64, e pipeline.Extent) Position {
		return Position{Stream: "EPISODES", Holder: "memory store", Held: held, Extent: e}
	}
	for name, c := range map[string]struct {
		position Position
		want     string
	}{
		"nothing anywhere":      {at(0, pipeline.Extent{}), ""},
		"a store that is new":   {at(0, pipeline.Extent{First: 1, Last: 9, Messages: 9}), ""},
		"a store that is ahead": {at(10, pipeline.Extent{First: 1, Last: 9, Messages: 9}), "EPISODES ends at message 9, but the memory store has what stood there up to 10"},
		"a stream that is gone": {at(10, pipeline.Extent{}), "EPISODES is empty, but the memory store has what stood there up to 10"},
		"all dropped":           {at(10, pipeline.Extent{First: 11, Last: 10, Messages: 0}), ""},
		"some dropped":          {at(8, pipeline.Extent{First: 9, Last: 10, Messages: 2}), ""},
		"in step":               {at(9, pipeline.Extent{First: 1, Last: 9, Messages: 9}), ""},
	} {
		got := ""
		if err := intact([]Position{at(0, pipeline.Extent{}), c.position}); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// filledStore and filledLog are filled by another process at the moment when they are asked
// for their ends.
type filledStore struct {
	store.Store
	said, commit func() uint64
}

func (f filledStore) Newest(context.Context) (episode, effect uint64, err error) {
	return f.said(), f.commit(), nil
}

type filledLog struct {
	audit.Log
	commit func() uint64
}

func (f filledLog) LastSequence(context.Context) (uint64, error) { return f.commit(), nil }

// TestStreamsThatGrowAreNotShort: where other processes go on meanwhile, a start finds no
// stream short. It finds one that ends before what the stores have.
func TestStreamsThatGrowAreNotShort(t *testing.T) {
	t.Parallel()
	js := brokertest.Start(t).JS
	publish := func(subject string) func() uint64 {
		return func() uint64 {
			ack, err := js.Publish(t.Context(), subject, nil)
			if err != nil {
				t.Error(err)
				return 0
			}
			return ack.Sequence
		}
	}
	short := func(said, commit func() uint64) error {
		t.Helper()
		found, err := Short(t.Context(), filledStore{said: said, commit: commit}, filledLog{commit: commit},
			pipeline.NewReplay(js, topology.StreamEpisodes, "ingest"), pipeline.NewReplay(js, topology.StreamAudit, "consolidator"),
			slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if err := short(publish("palimpsest.episodes.default.ann._._"), publish("palimpsest.audit.default.ann._._")); err != nil {
		t.Errorf("while they grow: %v", err)
	}
	beyond := func() uint64 { return 9 }
	if err := short(beyond, beyond); !errors.As(err, new(*ShortError)) {
		t.Errorf("behind their ends: %v", err)
	}
}
