package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"palimpsest/internal/broker"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/config"
	"palimpsest/internal/embed/local"
	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
	"palimpsest/services/ingest"
)

// open runs a process over dir, once its store is repaired, until the test calls
// stop.
func open(t *testing.T, dir string) (h *process, stop func()) {
	t.Helper()
	return openWith(t, loopback(dir))
}

// loopback returns the configuration of a process over dir that listens on free
// ports of the loopback interface.
func loopback(dir string) Config {
	cfg := defaults()
	if err := config.Of(&cfg).YAML("embedded.yaml", embeddedYAML); err != nil {
		panic(err) // it is part of the program
	}
	cfg.Data, cfg.NATS.URL, cfg.NATS.Listen, cfg.HTTP.Listen = dir, broker.OwnServer, "127.0.0.1:0", "127.0.0.1:0"
	cfg.complete()
	return cfg
}

func openWith(t testing.TB, cfg Config) (h *process, stop func()) {
	t.Helper()
	return openAltered(t, cfg, func(*process) {}, func(*process) {})
}

// openAltered is openWith for a process that prepare changes before its backends
// open, and rewire before its services run.
func openAltered(t testing.TB, cfg Config, prepare, rewire func(*process)) (h *process, stop func()) {
	t.Helper()
	h = &process{target: whole(), cfg: cfg, log: slog.New(slog.DiscardHandler), now: time.Now, embedder: local.New()}
	prepare(h)
	if err := h.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	rewire(h)
	ctx, cancel := context.WithCancel(context.Background())
	done, ready := make(chan error, 1), make(chan error, 2)
	go func() {
		err := h.run(ctx, func() { ready <- nil })
		ready <- errors.Join(errEnded, err)
		done <- err
	}()
	if err := receive(t, "readiness", ready); err != nil {
		t.Fatal(err)
	}
	return h, func() {
		t.Helper()
		cancel()
		if err := receive(t, "the end", done); err != nil {
			t.Fatal(err)
		}
	}
}

// errEnded: a process ended before it was ready.
var errEnded = errors.New("ended before it was ready")

// say publishes n episodes of each user, from number from, and waits until they
// are consolidated.
func say(t *testing.T, h *process, from, n int) {
	t.Helper()
	for i := from; i < from+n; i++ {
		for _, user := range []string{"nora", "bob"} {
			s := scope.Scope{Project: "default", User: user, Session: "s1"}
			_, err := h.runtime.Publisher().Publish(t.Context(), events.Meta{ID: fmt.Sprintf("%s-%d", user, i), Source: "test"}, events.EpisodeRecorded{
				Scope: s, Role: events.RoleUser, Content: fmt.Sprintf("I live in Town%d.", i),
				Timestamp: events.Timestamp{Time: time.Date(2026, 3, 1, 12, i, 0, 0, time.UTC)},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	reached(t, h, uint64(from+n-1))
}

// reached waits until the rule that runs on every episode has reached ordinal,
// in both scopes.
func reached(t *testing.T, h *process, ordinal uint64) {
	t.Helper()
	for _, user := range []string{"nora", "bob"} {
		reachedBy(t, h, scope.Scope{Project: "default", User: user}, ordinal)
	}
}

// reachedBy waits until rule turn has reached ordinal in a scope.
func reachedBy(t testing.TB, h *process, fact scope.Scope, ordinal uint64) memory.State {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		state, err := h.store.State(t.Context(), fact)
		if err == nil && state.Watermarks[memory.RuleTurn] >= ordinal && state.LastOrdinal >= ordinal {
			return state
		}
		select {
		case <-deadline:
			t.Fatalf("%s is at %+v, %v", fact, state, err)
		case <-tick.C:
		}
	}
}

func exported(t *testing.T, h *process) string {
	t.Helper()
	var out bytes.Buffer
	err := h.store.Scopes(t.Context(), scope.Selector{Project: "default"}, func(s scope.Scope) bool {
		snapshot, err := h.store.Snapshot(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range append(snapshot.Versions, snapshot.Facts...) {
			fmt.Fprintf(&out, "%s %s@%d %s\n", s, f.ID, f.Revision, f.Text)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// A memory store that was restored from an older copy, or lost, is whole again
// before anything new is stored, and goes on from there.
func TestRestoredStoreIsHealedAtStart(t *testing.T) {
	t.Parallel()
	for _, kept := range []bool{true, false} {
		t.Run(fmt.Sprintf("kept %v", kept), func(t *testing.T) {
			t.Parallel()
			dir, path := t.TempDir(), ""
			path = filepath.Join(dir, "memory.db")
			h, stop := open(t, dir)
			say(t, h, 1, 3)
			stop()
			older, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			h, stop = open(t, dir)
			say(t, h, 4, 4)
			want := exported(t, h)
			stop()
			for _, suffix := range []string{"", "-wal", "-shm"} {
				if err := os.Remove(path + suffix); err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
			}
			if kept {
				if err := os.WriteFile(path, older, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			h, stop = open(t, dir)
			defer stop()
			reached(t, h, 7)
			if diff := cmp.Diff(want, exported(t, h)); diff != "" {
				t.Errorf("healed (-want +got):\n%s", diff)
			}
			if _, err := h.caughtUp.Ready(t.Context()); err != nil {
				t.Errorf("not ready: %v", err)
			}
			say(t, h, 8, 1) // takes its place behind the rest
		})
	}
}

// Where the streams and the audit log are lost together, only the store knows
// what there was: a start says so before the first commit fails.
func TestLostStreamsAndLogAreNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h, stop := open(t, dir)
	say(t, h, 1, 2)
	stop()
	lost, err := filepath.Glob(filepath.Join(dir, auditFile+"*"))
	if err != nil || len(lost) == 0 {
		t.Fatalf("no audit log: %v, %v", lost, err)
	}
	for _, path := range append(lost, filepath.Join(dir, natsDir)) {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	h, stop = open(t, dir)
	defer stop()
	got := h.readiness.Ready(t.Context())
	if check := got.Checks["intact"]; got.Ready || !strings.Contains(check.Error, "EPISODES") || !strings.Contains(check.Error, "palimpsest rebuild") {
		t.Errorf("readiness %+v", got)
	}
}

// scattered is a store whose scopes lie on several servers.
type scattered struct{ store.Store }

func (scattered) Lost() <-chan struct{}                    { return nil }
func (scattered) Scattered() bool                          { return true }
func (scattered) Mend(context.Context, store.Remedy) error { return nil }

// TestP1NodeOfAClusterComesBackWithLess: the cursors are there, on a server that lost
// nothing. What another one lost is stored again all the same.
func TestP1NodeOfAClusterComesBackWithLess(t *testing.T) {
	t.Parallel()
	h, stop := open(t, t.TempDir())
	defer stop()
	say(t, h, 1, 3)
	other := loopback(t.TempDir())
	if err := os.MkdirAll(other.Data, 0o700); err != nil {
		t.Fatal(err)
	}
	less, _, err := openMemory(t.Context(), other, h.embedder.Info(), h.now, h.log)
	if err != nil {
		t.Fatal(err)
	}
	defer less.Close()
	nora := scope.Scope{Project: "default", User: "nora"}
	for _, user := range []string{"nora", "bob"} {
		newest, err := h.store.EpisodeRange(t.Context(), scope.Scope{Project: "default", User: user}, events.Range{From: 2, To: 3})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := less.PutEpisodes(t.Context(), newest); err != nil {
			t.Fatal(err)
		}
	}
	end, err := episodesOf(h.streams.JetStream()).End(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range ingest.Partitions() {
		if err := less.SetCursor(t.Context(), p.Reader, 0, end); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		through store.Store
		want    uint64
	}{{less, 1}, {scattered{less}, 3}} { // one server alone cannot have lost what its cursor counts
		if err := h.healing.StoreAgain(t.Context(), tc.through); err != nil {
			t.Fatal(err)
		}
		if state, err := less.State(t.Context(), nora); err != nil || state.LastOrdinal != tc.want {
			t.Errorf("%T: %+v, %v; want %d", tc.through, state, err, tc.want)
		}
	}
}
