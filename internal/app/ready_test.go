package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/audit"
	"palimpsest/internal/embed"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/store"
)

func TestReadinessNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	h, stop := open(t, t.TempDir())
	defer stop()
	healed(t, h)
	h.caughtUp.Set(false)
	got := h.ready(t.Context())
	if got.Ready || got.Checks["recovered"].OK || !strings.Contains(got.Checks["recovered"].Error, "is being brought up to the streams") {
		t.Errorf("%+v", got)
	}
	for _, name := range []string{"nats", "memory", "audit", "stages"} {
		if !got.Checks[name].OK {
			t.Errorf("%s: %+v", name, got.Checks[name])
		}
	}
}

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
		h := &process{store: s}
		check := func(name string, episodes any, want error) {
			t.Helper()
			details, err := h.memoryReady(t.Context())
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

// TestReadinessFollowsProgress: a stage that passes nothing makes the process
// unready, and a scope that stands still does not.
func TestReadinessFollowsProgress(t *testing.T) {
	t.Parallel()
	var clock atomic.Int64
	now := func() time.Time { return time.Unix(clock.Load(), 0) }
	h, stop := openAltered(t, loopback(t.TempDir()), func(*process) {}, func(h *process) {
		h.tracker = pipeline.NewTracker(now, h.log)
	})
	defer stop()
	healed(t, h)
	p := pipeline.Progress{
		Stage: "decider", Runnable: 1, Delayed: 2, Passed: 1, Scopes: []pipeline.BusyScope{{Scope: "p/ann", Since: now()}},
	}
	for range 4 {
		h.tracker.Observe([]pipeline.Progress{p})
		clock.Add(5)
	}
	got := h.ready(t.Context())
	stages := got.Checks["stages"]
	if got.Ready || stages.OK || stages.Error != "stages stand still: decider" {
		t.Errorf("stalled: %+v", got)
	}
	p.Passed++
	h.tracker.Observe([]pipeline.Progress{p})
	got = h.ready(t.Context())
	stages = got.Checks["stages"]
	want := map[string]any{"delayed": map[string]uint64{"decider": 2}, "stalled_scopes": []string{"p/ann"}, "stalled_scope_count": 1}
	delete(stages.Details, "in_flight")
	delete(stages.Details, "failing")
	if diff := cmp.Diff(want, stages.Details); !got.Ready || diff != "" {
		t.Errorf("moves again: %+v\n(-want +got):\n%s", got, diff)
	}
}

func TestPlainWords(t *testing.T) {
	t.Parallel()
	cfg := Config{Data: "/var/lib/p", Memory: backendFile}
	other := errors.New("something else")
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("sqlite: open: %w", store.ErrNewer), "data: /var/lib/p was written by a newer version of Palimpsest"},
		{fmt.Errorf("audit sqlite: x: %w", audit.ErrLocked), "data: /var/lib/p is in use by another process"},
		{&fs.PathError{Op: "mkdir", Path: "/var/lib/p", Err: syscall.EACCES}, "data: /var/lib/p cannot be used: permission denied"},
		{other, "something else"},
		{fmt.Errorf("sqlite: check: %w", store.ErrDamaged), "data: the memory store in /var/lib/p is damaged; " +
			"\"palimpsest rebuild --data /var/lib/p\" builds it anew from the streams (sqlite: check: store: damaged)"},
	} {
		got := plain(cfg, c.err)
		if got.Error() != c.want || !errors.Is(got, c.err) {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
