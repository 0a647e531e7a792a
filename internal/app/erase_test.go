package app

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"palimpsest/internal/broker"
	"palimpsest/internal/erasure"
	"palimpsest/pkg/scope"
)

// TestTombstonesStayInForceElsewhere: a data directory whose broker was embedded keeps its
// tombstones when another broker is chosen, and a job has to be finished before that.
func TestTombstonesStayInForceElsewhere(t *testing.T) {
	t.Parallel()
	elsewhere := Config{Data: t.TempDir(), NATS: broker.Config{ConnectConfig: broker.ConnectConfig{URL: "nats://127.0.0.1:1"}}}
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

// TestStartsWithoutADirectory: a process whose engines are all of others starts where it
// cannot write a data directory, and cannot erase then.
func TestStartsWithoutADirectory(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]struct {
		data string
		book bool
	}{"below a file": {filepath.Join(file, "data"), false}, "new": {filepath.Join(t.TempDir(), "data"), true}} {
		h := &process{target: whole(), cfg: Config{Data: at.data, NATS: broker.Config{ConnectConfig: broker.ConnectConfig{URL: "nats://127.0.0.1:1"}}}, log: slog.New(slog.DiscardHandler)}
		if err := h.prepareErasures(t.Context()); err != nil || (h.cfg.erasures != nil) != at.book {
			t.Errorf("%s: %v, %v", name, h.cfg.erasures, err)
		}
	}
}
