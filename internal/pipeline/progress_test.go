package pipeline

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/pkg/events"
)

// told is a tracker with a clock that stands, and its log.
func told() (tr *Tracker, pass func(time.Duration), log *bytes.Buffer) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	log = &bytes.Buffer{}
	tr = NewTracker(func() time.Time { return now }, slog.New(slog.NewTextHandler(log, nil)))
	return tr, func(d time.Duration) { now = now.Add(d) }, log
}

func TestTracker(t *testing.T) {
	t.Parallel()
	busy := Progress{Stage: "s", Runnable: 3, Passed: 7}
	moved, idle, delayed := busy, busy, busy
	moved.Passed++
	idle.Runnable = 0
	delayed.Runnable, delayed.Delayed = 0, 3
	for name, c := range map[string]struct {
		seen []Progress // one each 5 s
		want []string
	}{
		"nothing passes":              {[]Progress{busy, busy, busy, busy}, []string{"s"}},
		"not for long enough":         {[]Progress{busy, busy, busy}, nil},
		"one passes":                  {[]Progress{busy, busy, moved, moved}, nil},
		"nothing passes after that":   {[]Progress{busy, moved, moved, moved, moved}, []string{"s"}},
		"there is no work":            {[]Progress{idle, idle, idle, idle}, nil},
		"work has just come":          {[]Progress{idle, idle, idle, busy}, nil},
		"there was none meanwhile":    {[]Progress{busy, busy, idle, busy, busy}, nil},
		"all of it waits":             {[]Progress{delayed, delayed, delayed, delayed}, nil},
		"a message passes at last":    {[]Progress{busy, busy, busy, busy, moved}, nil},
		"nothing is left to do":       {[]Progress{busy, busy, busy, busy, idle}, nil},
		"it begins to wait for later": {[]Progress{busy, busy, busy, busy, delayed}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr, pass, _ := told()
			for i, p := range c.seen {
				if i > 0 {
					pass(5 * time.Second)
				}
				tr.Observe([]Progress{p, {Stage: "other", Runnable: 1, Passed: uint64(i)}})
			}
			if diff := cmp.Diff(c.want, tr.Stalls().Stages); diff != "" {
				t.Errorf("stalled (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTrackerLogsAnIncidentOnce(t *testing.T) {
	t.Parallel()
	tr, pass, log := told()
	since := tr.now()
	p := Progress{Service: "decider", Stage: "s", Runnable: 1, Delayed: 2, Scopes: []BusyScope{{"p/ann", since}}}
	for range 8 {
		tr.Observe([]Progress{p})
		pass(5 * time.Second)
	}
	want := Stalls{Stages: []string{"s"}, Scopes: []string{"p/ann"}, ScopeCount: 1, Delayed: map[string]uint64{"s": 2}}
	if diff := cmp.Diff(want, tr.Stalls()); diff != "" {
		t.Errorf("stalls (-want +got):\n%s", diff)
	}
	p.Passed, p.Delayed, p.Scopes = 1, 0, nil
	tr.Observe([]Progress{p})
	if diff := cmp.Diff(Stalls{Delayed: map[string]uint64{}}, tr.Stalls()); diff != "" {
		t.Errorf("stalls (-want +got):\n%s", diff)
	}
	for _, msg := range []string{"stage makes no progress", "stage makes progress again", "scope makes no progress", "scope makes progress again", "work waits for another attempt"} {
		if n := strings.Count(log.String(), msg); n != 1 {
			t.Errorf("%q is logged %d times:\n%s", msg, n, log)
		}
	}
}

// A process that was suspended has not stood still: its stages had no turn.
func TestTrackerAfterASuspension(t *testing.T) {
	t.Parallel()
	tr, pass, _ := told()
	tr.Observe([]Progress{{Stage: "s", Runnable: 1}})
	pass(time.Hour)
	tr.Observe([]Progress{{Stage: "s", Runnable: 1}})
	if got := tr.Stalls().Stages; len(got) > 0 {
		t.Errorf("stalled: %v", got)
	}
}

func TestTrackerBoundsScopes(t *testing.T) {
	t.Parallel()
	tr, pass, _ := told()
	p := Progress{Stage: "s", Runnable: 20}
	for i := range 20 {
		p.Scopes = append(p.Scopes, BusyScope{string(rune('a' + i)), tr.now()})
	}
	pass(StallAfter)
	tr.Observe([]Progress{p})
	if got := tr.Stalls(); got.ScopeCount != 20 || len(got.Scopes) != maxStalledScopes {
		t.Errorf("%+v", got)
	}
}

// TestProgress follows what one stage says while a handler runs, while one waits
// for its next attempt, and when all is done.
func TestProgress(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	begun, answer := make(chan struct{}, 10), make(chan error)
	cfg := quickConfig()
	cfg.RetryBase, cfg.RetryMax, cfg.RetryOutage = time.Hour, time.Hour, time.Hour
	rt, _ := b.start(cfg, onEpisode(func(context.Context, episode) ([]events.Payload, error) {
		begun <- struct{}{}
		return nil, <-answer
	}))
	is := func(what string, want func(Progress) bool) {
		t.Helper()
		b.eventually(what, func() bool {
			all, err := rt.Progress(b.context())
			return err == nil && len(all) == 1 && all[0].Stage == "episodes" && want(all[0])
		})
	}
	is("idle", func(p Progress) bool { return p.Runnable == 0 && p.Delayed == 0 && p.Passed == 0 })
	b.say(user("ann"), "1")
	await(t, begun)
	is("running", func(p Progress) bool { return p.Runnable == 1 && len(p.Scopes) == 1 && p.Passed == 0 })
	answer <- context.DeadlineExceeded
	is("delayed", func(p Progress) bool { return p.Runnable == 0 && p.Delayed == 1 && len(p.Scopes) == 0 })
	b.say(user("bob"), "2")
	await(t, begun)
	answer <- nil
	await(t, begun) // something got through, so the first is tried again
	answer <- nil
	is("done", func(p Progress) bool { return p.Runnable == 0 && p.Delayed == 0 && p.Passed == 2 })
}
