package app

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/audit"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/store"
)

func TestReadinessNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	h, stop := open(t, t.TempDir())
	defer stop()
	healed(t, h)
	h.caughtUp.Set(false)
	got := h.readiness.Ready(t.Context())
	if got.Ready || got.Checks["recovered"].OK || !strings.Contains(got.Checks["recovered"].Error, "is being brought up to the streams") {
		t.Errorf("%+v", got)
	}
	for _, name := range []string{"nats", "memory", "audit", "stages"} {
		if !got.Checks[name].OK {
			t.Errorf("%s: %+v", name, got.Checks[name])
		}
	}
}

// TestReadinessFollowsProgress: a stage that passes nothing makes the process
// unready, and a scope that stands still does not.
func TestReadinessFollowsProgress(t *testing.T) {
	t.Parallel()
	var clock atomic.Int64
	now := func() time.Time { return time.Unix(clock.Load(), 0) }
	h, stop := openAltered(t, loopback(t.TempDir()), func(*process) {}, func(h *process) {
		h.readiness.Tracker = pipeline.NewTracker(now, h.log)
	})
	defer stop()
	healed(t, h)
	p := pipeline.Progress{
		Stage: "decider", Runnable: 1, Delayed: 2, Passed: 1, Scopes: []pipeline.BusyScope{{Scope: "p/ann", Since: now()}},
	}
	for range 4 {
		h.readiness.Tracker.Observe([]pipeline.Progress{p})
		clock.Add(5)
	}
	got := h.readiness.Ready(t.Context())
	stages := got.Checks["stages"]
	if got.Ready || stages.OK || stages.Error != "stages stand still: decider" {
		t.Errorf("stalled: %+v", got)
	}
	p.Passed++
	h.readiness.Tracker.Observe([]pipeline.Progress{p})
	got = h.readiness.Ready(t.Context())
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
			"\"palimpsest rebuild --data /var/lib/p\" rebuilds it from the streams (sqlite: check: store: damaged)"},
	} {
		got := plain(cfg, c.err)
		if got.Error() != c.want || !errors.Is(got, c.err) {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
