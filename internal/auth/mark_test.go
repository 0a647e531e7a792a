package auth_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"palimpsest/internal/auth"
	"palimpsest/internal/auth/bucket"
	"palimpsest/internal/cursor"
	"palimpsest/internal/testengine/brokertest"
	"palimpsest/internal/topology"
)

// fakeStore keeps cursors in memory, and refuses while it is away.
type fakeStore struct {
	mu      sync.Mutex
	away    error
	cursors map[string]cursor.Cursor
	set     chan struct{} // receives once a cursor is set
}

func newFakeStore() *fakeStore {
	return &fakeStore{cursors: map[string]cursor.Cursor{}, set: make(chan struct{}, 8)}
}

func (f *fakeStore) ReadCursors(_ context.Context, readers ...string) ([]cursor.Cursor, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []cursor.Cursor
	for _, r := range readers {
		out = append(out, f.cursors[r])
	}
	return out, f.away
}

func (f *fakeStore) SetCursor(_ context.Context, reader string, _ uint64, c cursor.Cursor) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.away != nil {
		return f.away
	}
	f.cursors[reader] = c
	f.set <- struct{}{}
	return nil
}

// TestP6LostBucketIsNoticedAtTheNextStart: the stores keep that a key was made. Where
// the bucket is gone at the next start, keys are required, until one is made and
// after.
func TestP6LostBucketIsNoticedAtTheNextStart(t *testing.T) {
	t.Parallel()
	memory, log := newFakeStore(), newFakeStore()
	env := brokertest.Start(t)
	r := &rig{js: env.JS, keys: auth.NewKeys(bucket.New(env.JS), time.Now), now: time.Now, marks: []cursor.Store{memory, log}}
	stop := r.follow(t, auth.Limits{})
	gate := func() *auth.Gate { return &auth.Gate{Ring: r.ring, Mode: auth.Auto} }
	if gate().Requires() || r.ring.Whole() != nil {
		t.Error("keys are required before one was made")
	}
	r.create(t, writer)
	<-memory.set
	<-log.set
	if err := r.ring.Whole(); err != nil {
		t.Error(err)
	}
	stop()
	stream, err := r.js.Stream(t.Context(), topology.StreamKeys)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.js.DeleteStream(t.Context(), topology.StreamKeys); err != nil {
		t.Fatal(err)
	}
	if _, err := r.js.CreateStream(t.Context(), stream.CachedInfo().Config); err != nil {
		t.Fatal(err)
	}

	rebuilt := newFakeStore() // it learns from the audit log what it does not have
	r.marks = []cursor.Store{rebuilt, log}
	stop = r.follow(t, auth.Limits{})
	if !gate().Requires() || !errors.Is(r.ring.Whole(), auth.ErrLost) {
		t.Errorf("required: %v, %v", gate().Requires(), r.ring.Whole())
	}
	<-rebuilt.set
	_, token := r.create(t, writer)
	if err := r.ring.Whole(); err != nil || !gate().Requires() {
		t.Errorf("with the key %.8s: %v", token, err)
	}
	stop()
}

// A store that cannot tell whether keys were made must not open the API.
func TestMarkThatCannotBeReadEndsTheStart(t *testing.T) {
	t.Parallel()
	env := brokertest.Start(t)
	memory, log := newFakeStore(), newFakeStore()
	memory.away = errors.New("away")
	if _, err := auth.OpenRing(t.Context(), bucket.New(env.JS), []cursor.Store{memory, log}, auth.Limits{}, time.Now, quiet); !errors.Is(err, memory.away) {
		t.Errorf("the first store is away: %v", err)
	}
	if _, err := auth.OpenRing(t.Context(), bucket.New(env.JS), []cursor.Store{log, memory}, auth.Limits{}, time.Now, quiet); err != nil {
		t.Errorf("the second store is away: %v", err)
	}
}
