package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"palimpsest/internal/audit/audittest"
	"palimpsest/internal/audit/journal"
	"palimpsest/internal/broker"
	"palimpsest/internal/testengine/brokertest"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds what must come about in the end.
const patience = 30 * time.Second

// start runs the example with the credential of the broker's own directory, as
// docs/consumer.md describes it. stop ends it and returns what it said.
func start(t *testing.T, env *brokertest.Env, out string) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, options{url: env.URL, seed: filepath.Join(env.Dir, broker.SeedFile), name: "example", out: out})
	}()
	t.Cleanup(cancel)
	return func() error { cancel(); return <-done }
}

// told are the notes as scope/revision, once there are n of them.
func told(t *testing.T, out string, n int) (all []string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); ; <-tick.C {
		all = nil
		text, err := os.ReadFile(out)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			var n note
			if json.Unmarshal(line, &n) == nil {
				all = append(all, n.Scope.User+"/"+strconv.FormatUint(n.Revision, 10))
			}
		}
		if len(all) >= n {
			return all
		}
		if time.Now().After(end) {
			t.Fatalf("%d notes, want %d", len(all), n)
		}
	}
}

// writer commits effects of one user after the other.
type writer struct {
	journal *journal.Journal
	last    map[string][2]uint64 // revision and sequence
}

func (w *writer) commit(t *testing.T, users ...string) {
	t.Helper()
	for _, user := range users {
		s, at := scope.Scope{Project: "default", User: user}, w.last[user]
		meta, effect := audittest.JournalEffect(s, at[0]+1, "a")
		effect.Facts = []events.Fact{{ID: "f", Revision: 1, Text: user}}
		sequence, err := w.journal.Append(t.Context(), meta, effect, at[1])
		if err != nil {
			t.Fatal(err)
		}
		w.last[user] = [2]uint64{at[0] + 1, sequence}
	}
}

func TestEachEffectIsNotedOnce(t *testing.T) {
	t.Parallel()
	env, out := brokertest.Start(t), filepath.Join(t.TempDir(), "facts.jsonl")
	w := &writer{journal.New(env.JS), map[string][2]uint64{}}
	w.commit(t, "ann", "bob", "ann")
	want := []string{"ann/1", "bob/1", "ann/2"}
	stop := start(t, env, out)
	if diff := cmp.Diff(want, told(t, out, 3)); diff != "" {
		t.Error(diff)
	}
	w.commit(t, "bob")
	env.Restart(t) // it reconnects
	w.commit(t, "cid")
	want = append(want, "bob/2", "cid/1")
	if diff := cmp.Diff(want, told(t, out, 5)); diff != "" {
		t.Error(diff)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}

	// It goes on where it was, also with a line that a crash cut off.
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(out, append(text, `{"scope":{"proj`...), 0o600); err != nil {
		t.Fatal(err)
	}
	w.commit(t, "ann")
	stop = start(t, env, out)
	want = append(want, "ann/3")
	if diff := cmp.Diff(want, told(t, out, 6)); diff != "" {
		t.Error(diff)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}

	// A consumer that lost its place is handed everything again.
	if err := env.JS.DeleteConsumer(t.Context(), stream, "example"); err != nil {
		t.Fatal(err)
	}
	w.commit(t, "dan")
	stop = start(t, env, out)
	want = append(want, "dan/1")
	if diff := cmp.Diff(want, told(t, out, 7)); diff != "" {
		t.Error(diff)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	env, dir := brokertest.Start(t), t.TempDir()
	broken := filepath.Join(dir, "broken.jsonl")
	if err := os.WriteFile(broken, []byte("not JSON\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	seed := filepath.Join(env.Dir, broker.SeedFile)
	for name, o := range map[string]options{
		"no credential":     {url: env.URL, out: filepath.Join(dir, "a")},
		"no such seed":      {url: env.URL, seed: filepath.Join(dir, "no"), out: filepath.Join(dir, "b")},
		"nobody there":      {url: "nats://127.0.0.1:1", seed: seed, out: filepath.Join(dir, "c")},
		"notes of another":  {url: env.URL, seed: seed, out: broken},
		"nowhere to write":  {url: env.URL, seed: seed, out: filepath.Join(dir, "no", "such")},
		"no such consumer.": {url: env.URL, seed: seed, name: "a.b", out: filepath.Join(dir, "d")},
	} {
		if o.name == "" {
			o.name = "example"
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		if err := run(ctx, o); err == nil {
			t.Errorf("%s: no error", name)
		}
		cancel()
	}
}
