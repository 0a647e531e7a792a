package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"palimpsest/internal/broker"
	"palimpsest/internal/erasure"
	"palimpsest/pkg/scope"
)

func TestErasureNeedsRoom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"memory.db", "nats/jetstream/1.blk"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, 500), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for free, want := range map[int64]error{999: errNoRoom, 1000: nil} {
		err := roomFor(dir, func(string) (broker.Space, error) { return broker.Space{Free: free, Total: 1 << 40}, nil })
		if !errors.Is(err, want) {
			t.Errorf("with %d bytes free: %v, want %v", free, err, want)
		}
	}
	broken := errors.New("no such disk")
	if err := roomFor(dir, func(string) (broker.Space, error) { return broker.Space{}, broken }); !errors.Is(err, broken) {
		t.Errorf("a disk that cannot be measured: %v", err)
	}
}

// TestTombstonesStayInForceElsewhere: a data directory whose broker was embedded keeps its
// tombstones when another broker is chosen, and a job has to be finished before that.
func TestTombstonesStayInForceElsewhere(t *testing.T) {
	t.Parallel()
	elsewhere := Config{Data: t.TempDir(), NATS: NATS{URL: "nats://127.0.0.1:1"}}
	if err := elsewhere.openErasures(); err != nil || elsewhere.erasures != nil {
		t.Fatalf("without erasures: %v", err)
	}
	book, err := erasure.Open(elsewhere.Data)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := book.Ask(scope.DefaultProject, "nora", "", time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := elsewhere.openErasures(); !errors.Is(err, errPending) {
		t.Errorf("with a job: %v, want %v", err, errPending)
	}
	none := func(context.Context) (uint64, error) { return 0, nil }
	if _, err := book.Run(t.Context(), erasure.Work{Until: none, Now: time.Now}); err != nil {
		t.Fatal(err)
	}
	if err := elsewhere.openErasures(); err != nil || elsewhere.born()(scope.DefaultProject, "nora") != 1 {
		t.Errorf("with a tombstone: %v", err)
	}
}
