package app

import (
	"context"
	"errors"
	"testing"
	"time"

	"palimpsest/internal/erasure"
	"palimpsest/pkg/scope"
)

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
	if err := elsewhere.openErasures(); !errors.Is(err, erasure.ErrPending) {
		t.Errorf("with a job: %v, want %v", err, erasure.ErrPending)
	}
	none := func(context.Context) (uint64, error) { return 0, nil }
	if _, err := book.Run(t.Context(), erasure.Work{Until: none, Now: time.Now}); err != nil {
		t.Fatal(err)
	}
	if err := elsewhere.openErasures(); err != nil || elsewhere.erasures.Born(scope.DefaultProject, "nora") != 1 {
		t.Errorf("with a tombstone: %v", err)
	}
}
