package pipeline

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"palimpsest/internal/cursor"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// fakeCursors keeps cursors in memory and shares all with everybody who asks.
type fakeCursors struct {
	mu   sync.Mutex
	kept map[string]cursor.Cursor
	err  error // of SetCursor
}

func (f *fakeCursors) ReadCursors(_ context.Context, readers ...string) ([]cursor.Cursor, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]cursor.Cursor, len(readers))
	for i, r := range readers {
		out[i] = f.kept[r]
	}
	return out, nil
}

func (f *fakeCursors) SetCursor(ctx context.Context, reader string, least uint64, c cursor.Cursor) error {
	if err := cursor.Check(ctx, f, reader, least); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return f.err
	}
	if f.kept == nil {
		f.kept = map[string]cursor.Cursor{}
	}
	f.kept[reader] = c
	return nil
}

func (f *fakeCursors) Share(_ context.Context, _ string, readers []string, _ string, ttl time.Duration) ([]string, error) {
	if ttl == 0 {
		return nil, nil
	}
	return readers, nil
}

func (f *fakeCursors) of(reader string) cursor.Cursor {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.kept[reader]
}

// inPartitions are all partitions of EPISODES.
func inPartitions() []Partition {
	all := make([]Partition, events.Partitions)
	for p := range all {
		all[p] = partition(p)
	}
	return all
}

// TestBacklogRefusesItsProject: past either bound the episodes of a project are
// refused, and nothing else is; once its backlog is stored they are taken again.
func TestBacklogRefusesItsProject(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	cursors := &fakeCursors{}
	other := scope.Scope{Project: "other", User: "ann"}
	look := func(s scope.Scope, most uint64, age, ahead time.Duration) error {
		a := &admission{
			js: b.js, now: func() time.Time { return time.Now().Add(ahead) }, most: most, age: age,
			inbox: &Inbox{Stream: "EPISODES", Partitions: inPartitions(), Cursors: cursors},
		}
		found, err := a.backlogs(b.context(), map[string]bool{s.Project: true})
		if err != nil {
			t.Fatal(err)
		}
		return found[s.Project]
	}
	if err := look(user("ann"), 1, time.Nanosecond, 0); err != nil {
		t.Errorf("with no episode: %v", err)
	}
	for _, who := range []string{"ann", "bob", "eve"} {
		b.say(user(who), "from "+who)
	}
	b.say(other, "from another project")
	for name, tc := range map[string]struct {
		who        scope.Scope
		most       uint64
		age, ahead time.Duration
		refused    bool
	}{
		"as many as the bound":       {user("ann"), 3, time.Hour, 0, true},
		"fewer":                      {user("ann"), 4, time.Hour, 0, false},
		"too old":                    {user("ann"), 9, time.Hour, 2 * time.Hour, true},
		"another project has fewer":  {other, 2, time.Hour, 0, false},
		"another project has enough": {other, 1, time.Hour, 0, true},
	} {
		if err := look(tc.who, tc.most, tc.age, tc.ahead); errors.Is(err, ErrBacklog) != tc.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, p := range inPartitions() {
		_ = cursors.SetCursor(b.context(), p.Reader, 0, cursor.Cursor{Sequence: 4})
	}
	if err := look(user("ann"), 1, time.Nanosecond, time.Hour); err != nil {
		t.Errorf("with all stored: %v", err)
	}
}

// TestCallersAreNotKeptWaiting: a caller gets the answer of the last look, and
// nothing but an episode is refused.
func TestCallersAreNotKeptWaiting(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	b.say(user("ann"), "one")
	cfg := quickConfig()
	cfg.Backlog = 1
	rt := b.runtime(cfg, b.js, b.conn)
	rt.broker.admission.inbox = &Inbox{Stream: "EPISODES", Partitions: inPartitions(), Cursors: &fakeCursors{}}
	b.eventually("an episode is refused", func() bool {
		_, err := rt.Publisher().Publish(b.context(), events.Meta{Source: "app"}, said(user("ann"), "more"))
		return errors.Is(err, ErrBacklog)
	})
	end := events.SessionEnded{Scope: user("ann"), Cause: events.EndExplicit}
	if _, err := rt.Publisher().Publish(b.context(), events.Meta{Source: "app"}, end); err != nil {
		t.Errorf("an end: %v", err)
	}
}
