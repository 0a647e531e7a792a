package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"palimpsest/pkg/events"
)

// runs is a handler that notes what it is given. Its first call waits until
// release is closed, so that the rest gathers.
type runs struct {
	release chan struct{}
	first   sync.Once
	told    func(run []episode) // may be nil
	fail    func(run []string) error

	mu    sync.Mutex
	seen  []string // handled, in order
	sizes []int
}

func (r *runs) handle(ctx context.Context, in []episode) ([]events.Payload, error) {
	r.first.Do(func() {
		select {
		case <-r.release:
		case <-ctx.Done():
		}
	})
	ids := make([]string, len(in))
	for i, e := range in {
		ids[i] = e.ID
	}
	if r.told != nil {
		r.told(in)
	}
	if r.fail != nil {
		if err := r.fail(ids); err != nil {
			return nil, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, ids...)
	r.sizes = append(r.sizes, len(in))
	h := events.Header{Scope: in[0].Scope.Fact()}
	return []events.Payload{events.EpisodeStored{Header: h, EpisodeID: in[len(in)-1].ID, LastOrdinal: 1, StoredAt: in[0].Time}}, nil
}

// gather runs a stage on n messages of one user, which all wait behind the
// first, and returns when the broker has an answer for each. Every endsAt-th
// of them is the end of a session, if that is not 0.
func (r *runs) gather(t *testing.T, n, endsAt int) (b *bench, rt *Runtime) {
	t.Helper()
	b = newBench(t)
	b.standard()
	r.release = make(chan struct{})
	rt, stop := b.start(quickConfig(), Consume("EPISODES", "episodes", OnRun(r.handle), On(r.end)))
	for i := range n {
		if endsAt > 0 && i%endsAt == endsAt-1 {
			b.publish(events.SessionEnded{Scope: user("ann"), Cause: events.EndIdle, LastOrdinal: uint64(i)})
			continue
		}
		b.say(user("ann"), fmt.Sprint(i))
	}
	b.eventually("all are held", func() bool {
		stats := rt.Stats()
		return len(stats) == 1 && stats[0].InFlight == n
	})
	close(r.release)
	b.settled("EPISODES", "episodes")
	stop()
	return b, rt
}

// end notes the end of a session by its ordinal.
func (r *runs) end(_ context.Context, in events.Event[events.SessionEnded]) ([]events.Payload, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, fmt.Sprint(in.Data.LastOrdinal))
	return nil, nil
}

func numbers(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint(i)
	}
	return out
}

func TestWhatWaitsIsHandledTogether(t *testing.T) {
	t.Parallel()
	const n = 2*maxRun - 1
	var r runs
	b, rt := r.gather(t, n, 0)
	if !slices.Equal(r.seen, numbers(n)) {
		t.Errorf("handled %v", r.seen)
	}
	if most := slices.Max(r.sizes); most != maxRun || len(r.sizes) > 5 {
		t.Errorf("runs of %v, want of at most %d", r.sizes, maxRun)
	}
	stream, err := b.js.Stream(b.context(), "STORED")
	if err != nil {
		t.Fatal(err)
	}
	if got := stream.CachedInfo().State.Msgs; got != uint64(len(r.sizes)) {
		t.Errorf("%d announced for %d runs", got, len(r.sizes))
	}
	if got := rt.Stats()[0]; got.Handled != n || got.Retried != 0 || got.InFlight != 0 {
		t.Errorf("stats %+v", got)
	}
}

func TestRefusalInARunIsIsolated(t *testing.T) {
	t.Parallel()
	const n, bad = 20, "7"
	r := runs{fail: func(run []string) error {
		if slices.Contains(run, bad) {
			return Rejectf(events.CodeIDConflict, "id", "not this one")
		}
		return nil
	}}
	b, rt := r.gather(t, n, 0)
	want := slices.DeleteFunc(numbers(n), func(id string) bool { return id == bad })
	if !slices.Equal(r.seen, want) {
		t.Errorf("handled %v", r.seen)
	}
	b.deadLetters(1)
	if got := rt.Stats()[0]; got.Handled != n-1 || got.Buried != 1 {
		t.Errorf("stats %+v", got)
	}
}

func TestPanicInARunIsIsolated(t *testing.T) {
	t.Parallel()
	const n, bad = 12, "5"
	var alone atomic.Int32
	r := runs{fail: func(run []string) error {
		if slices.Contains(run, bad) && (len(run) > 1 || alone.Add(1) < 3) {
			panic("cannot")
		}
		return nil
	}}
	_, rt := r.gather(t, n, 0)
	want := slices.Sorted(slices.Values(numbers(n)))
	if got := slices.Sorted(slices.Values(r.seen)); !slices.Equal(got, want) {
		t.Errorf("handled %v", r.seen)
	}
	if got := rt.Stats()[0]; got.Handled != n || got.Panics != 2 {
		t.Errorf("stats %+v", got)
	}
}

// TestFailedRunIsAnAttempt: a handler that gets a message alone after its run has
// failed sees it as a second attempt, because the payloads of the run may not have
// been published. A message that never ran is seen as a first attempt.
func TestFailedRunIsAnAttempt(t *testing.T) {
	t.Parallel()
	const n = 6
	var mu sync.Mutex
	together, alone := map[string]bool{}, map[string]int{}
	r := runs{told: func(in []episode) {
		mu.Lock()
		defer mu.Unlock()
		for _, e := range in {
			if len(in) > 1 {
				together[e.ID] = true
			} else {
				alone[e.ID] = e.Delivery
			}
		}
	}}
	r.fail = func(run []string) error {
		if len(run) > 1 {
			return errors.New("not together")
		}
		return nil
	}
	r.gather(t, n, 0)
	mu.Lock()
	defer mu.Unlock()
	if len(alone) != n || len(together) < 2 {
		t.Fatalf("%d of %d handled alone, %d together", len(alone), n, len(together))
	}
	for id, got := range alone {
		want := 1
		if together[id] {
			want = 2
		}
		if got != want {
			t.Errorf("message %s: attempt %d, want %d", id, got, want)
		}
	}
}

// TestRunEndsAtAnotherKind: the order of a key holds across kinds.
func TestRunEndsAtAnotherKind(t *testing.T) {
	t.Parallel()
	const n = 17
	var r runs
	_, rt := r.gather(t, n, 4)
	if !slices.Equal(r.seen, numbers(n)) {
		t.Errorf("handled %v", r.seen)
	}
	if most := slices.Max(r.sizes); most > 3 {
		t.Errorf("runs of %v across the end of a session", r.sizes)
	}
	if got := rt.Stats()[0]; got.Handled != n {
		t.Errorf("stats %+v", got)
	}
}
