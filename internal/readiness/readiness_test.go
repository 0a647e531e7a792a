package readiness

import (
	"context"
	"errors"
	"io/fs"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"palimpsest/internal/embed"
	"palimpsest/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// slowCounter is a store that counts its rows in a time of its own.
type slowCounter struct {
	store.Store
	took time.Duration
	err  error
}

func (*slowCounter) Ping(context.Context) error { return nil }

func (*slowCounter) Spaces() store.Spaces {
	return store.Spaces{
		Served: store.Space{ID: 1, Embedder: embed.Info{Name: "served", Version: "1"}},
		Next:   &store.Space{ID: 2, Embedder: embed.Info{Name: "next", Version: "1"}},
	}
}

func (c *slowCounter) Stats(ctx context.Context) (store.Stats, error) {
	select {
	case <-time.After(c.took):
		return store.Stats{Episodes: 7}, c.err
	case <-ctx.Done():
		return store.Stats{}, ctx.Err()
	}
}

// TestReadinessDoesNotWaitForCounts: a store that is slow to count its rows is ready.
// One that cannot count them is not. Its vector spaces need no count.
func TestReadinessDoesNotWaitForCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slowCounter{took: time.Minute}
		p := &Process{Store: s, Plain: func(err error) error { return err }}
		check := func(name string, episodes any, want error) {
			t.Helper()
			details, err := p.memory(t.Context())
			if !errors.Is(err, want) || want == nil && (details["episodes"] != episodes || details["vectors"] != "served@1" || details["vectors_building"] != "next@1") {
				t.Errorf("%s: %v, %v", name, details, err)
			}
		}
		check("never counted", nil, nil)
		s.took = 0
		check("counted", uint64(7), nil)
		s.took = time.Minute
		check("slow again", uint64(7), nil)
		s.took, s.err = 0, fs.ErrClosed
		check("failing", nil, fs.ErrClosed)
	})
}
