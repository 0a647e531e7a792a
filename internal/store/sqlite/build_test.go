package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/sqlitefile"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// building opens a file under construction, and says n episodes of a user in it.
func building(t *testing.T, path string, n int) *Store {
	t.Helper()
	s, err := Open(t.Context(), Config{Path: path, Building: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if _, err := s.PutEpisode(t.Context(), testEpisode("u", fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func shut(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func ordinal(t *testing.T, s *Store) uint64 {
	t.Helper()
	state, err := s.State(t.Context(), scope.Scope{Project: "p", User: "u"})
	if err != nil {
		t.Fatal(err)
	}
	return state.LastOrdinal
}

func TestBuildingIsSeenOnceSettled(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "memory.db")
	s := building(t, path, 3)
	if got := ordinal(t, s); got != 0 {
		t.Errorf("ordinal %d before it is settled", got)
	}
	if err := s.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := ordinal(t, s); got != 3 {
		t.Errorf("ordinal %d once it is settled", got)
	}
	if _, err := s.PutEpisode(t.Context(), testEpisode("u", "late")); err != nil {
		t.Fatal(err)
	}
	shut(t, s)
	s = building(t, path, 0)
	defer shut(t, s)
	if got := ordinal(t, s); got != 3 {
		t.Errorf("ordinal %d: what was not settled is kept", got)
	}
}

func TestBuildingEndsWithItsFirstFault(t *testing.T) {
	t.Parallel()
	s := building(t, filepath.Join(t.TempDir(), "memory.db"), 3)
	defer shut(t, s)
	fault := errors.New("fault")
	if err := s.write(t.Context(), func(*writer) error { return fault }); !errors.Is(err, fault) {
		t.Fatal(err)
	}
	if _, err := s.PutEpisode(t.Context(), testEpisode("u", "4")); !errors.Is(err, fault) {
		t.Errorf("a write behind the fault: %v", err)
	}
	if err := s.Settle(t.Context()); !errors.Is(err, fault) {
		t.Errorf("settled behind the fault: %v", err)
	}
	if got := ordinal(t, s); got != 0 {
		t.Errorf("ordinal %d", got)
	}
}

func TestReplaceKeepsTheOneBefore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, made := filepath.Join(dir, "memory.db"), filepath.Join(dir, "memory.db.new")
	for n := 1; n <= 3; n++ {
		s := building(t, made, n)
		if _, err := Replace(path, made); err == nil {
			t.Fatal("a file that is not sealed took the place")
		}
		if err := s.Seal(t.Context()); err != nil {
			t.Fatal(err)
		}
		shut(t, s)
		kept, err := Replace(path, made)
		if err != nil {
			t.Fatal(err)
		}
		if want := path + ".old"; n > 1 && kept != want || n == 1 && kept != "" {
			t.Errorf("kept as %q", kept)
		}
		names := map[string]bool{}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names[e.Name()] = true
		}
		want := map[string]bool{"memory.db": true, "memory.db.lock": true, "memory.db.old": true}
		if n == 1 {
			delete(want, "memory.db.old")
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("files (-want +got):\n%s", diff)
		}
		live := building(t, path, 0)
		if got := ordinal(t, live); got != uint64(n) {
			t.Errorf("generation %d is at ordinal %d", n, got)
		}
		if _, err := Replace(path, made); !errors.Is(err, store.ErrLocked) {
			t.Errorf("replaced while open: %v", err)
		}
		shut(t, live)
	}
}

// TestReplaceRemovesTheLogOfTheOldFile: SQLite would lay it over the new one.
func TestReplaceRemovesTheLogOfTheOldFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, made := filepath.Join(dir, "memory.db"), filepath.Join(dir, "memory.db.new")
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		if err := os.WriteFile(name, []byte("damaged"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := building(t, made, 2)
	if err := s.Seal(t.Context()); err != nil {
		t.Fatal(err)
	}
	shut(t, s)
	if _, err := Replace(path, made); err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(path + ".old-wal"); err != nil || string(raw) != "damaged" {
		t.Errorf("the old log: %q, %v", raw, err)
	}
	live := building(t, path, 0)
	defer shut(t, live)
	if got := ordinal(t, live); got != 2 {
		t.Errorf("ordinal %d", got)
	}
}

func TestInherit(t *testing.T) {
	t.Parallel()
	dir, ctx := t.TempDir(), t.Context()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	fact := scope.Scope{Project: "p", User: "u"}
	open := func(name string, building bool) *Store {
		s, err := Open(ctx, Config{Path: filepath.Join(dir, name), Building: building, Now: clock, AccessedFrom: func() time.Time {
			return now.AddDate(0, 0, 1)
		}})
		if err != nil {
			t.Fatal(err)
		}
		mark := uint64(1)
		for _, e := range []events.EffectCommitted{
			{Revision: 1, Watermark: &mark, Facts: []events.Fact{{ID: "f", Revision: 1, Text: "tea", Confidence: 0.5, CreatedAt: now}}},
			{Revision: 2, Facts: []events.Fact{{ID: "g", Revision: 2, Text: "ale", Confidence: 0.5, CreatedAt: now}}},
		} {
			e.Header, e.Rule, e.CommittedAt = events.Header{Scope: fact}, "turn", now
			if err := s.Apply(ctx, e, e.Revision); err != nil {
				t.Fatal(err)
			}
		}
		return s
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	live, heir := open("memory.db", false), open("memory.db.new", true)
	defer shut(t, live)
	defer shut(t, heir)
	must(live.Touch(ctx, fact, []string{"f"}, now.Add(time.Hour)))
	_, err := live.Begin(ctx, store.Request{Project: "p", Route: "r", Key: "k", BodyHash: "h", Expires: now.Add(time.Hour)})
	must(err)
	must(live.Finish(ctx, store.Request{Project: "p", Route: "r", Key: "k", BodyHash: "h", Status: 201, Body: []byte("answer"), Expires: now.Add(time.Hour)}))
	_, err = live.Begin(ctx, store.Request{Project: "p", Route: "r", Key: "old", BodyHash: "h", Expires: now.Add(time.Minute)})
	must(err)
	must(live.PutCached(ctx, fact, "prompt", []byte("reply"), now.Add(time.Hour)))
	must(live.SetLastFire(ctx, "nightly", now))
	claim := store.Claim{Range: events.Range{From: 1, To: 4}, At: now, Attempt: 2}
	_, _, err = live.Claim(ctx, fact, "turn", store.Claim{}, claim)
	must(err)

	now = now.Add(2 * time.Minute)
	must(heir.Inherit(ctx, live))
	must(heir.Seal(ctx))
	type heritage struct {
		Fact, Other     store.Fact
		Request         *store.Request
		Cached          []byte
		Fired           time.Time
		Claim           store.Claim
		Ledger          []store.Account
		Stats           store.Stats
		RequestIsForgot bool
	}
	read := func(s *Store) (h heritage) {
		t.Helper()
		facts, err := s.FactsByID(ctx, fact, []string{"f", "g"})
		must(err)
		for _, f := range facts {
			if f.ID == "f" {
				h.Fact = f
			} else {
				h.Other = f
			}
		}
		h.Request, err = s.Begin(ctx, store.Request{Project: "p", Route: "r", Key: "k", BodyHash: "h"})
		must(err)
		h.Cached, err = s.Cached(ctx, fact, "prompt")
		must(err)
		h.Fired, err = s.LastFire(ctx, "nightly")
		must(err)
		look, err := s.Look(ctx, fact)
		h.Claim = look.Claims["turn"]
		must(err)
		expired, err := s.Begin(ctx, store.Request{Project: "p", Route: "r", Key: "old", BodyHash: "h"})
		must(err)
		h.RequestIsForgot = expired == nil
		h.Ledger, err = s.Accounts(ctx, scope.Selector{Project: "p"}, []string{"turn"})
		must(err)
		return h
	}
	want, got := read(live), read(heir)
	if want.Fact.AccessCount != 1 || want.Request == nil || want.Claim != claim || !want.RequestIsForgot {
		t.Fatalf("the live store has %+v", want)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("inherited (-live +heir):\n%s", diff)
	}
}

// TestALogThatWasCut checks that a store whose log was cut is whole or is reported
// as damaged.
func TestALogThatWasCut(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name       string
		checkpoint bool
		left       func(size int64) int64
		damaged    bool
	}{
		{"not cut", true, func(size int64) int64 { return size }, false},
		{"cut before anything was copied", false, func(size int64) int64 { return size / 2 }, false},
		{"cut behind what was copied", true, func(size int64) int64 { return size / 2 }, true},
		{"gone", true, func(int64) int64 { return 0 }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path, copied := filepath.Join(dir, "memory.db"), filepath.Join(dir, "copy.db")
			s, err := Open(t.Context(), Config{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			defer shut(t, s)
			for n := range 20 {
				if _, err := s.PutEpisode(t.Context(), testEpisode("u", fmt.Sprint(n))); err != nil {
					t.Fatal(err)
				}
			}
			if tc.checkpoint {
				var busy, logged, done int
				if _, err := s.reads.one(t.Context(), `PRAGMA wal_checkpoint(PASSIVE)`, nil, &busy, &logged, &done); err != nil || done == 0 {
					t.Fatalf("checkpoint: %d of %d, %v", done, logged, err)
				}
			}
			for _, suffix := range []string{"", "-wal", "-shm"} { // what a process that is killed leaves
				raw, err := os.ReadFile(path + suffix)
				if err != nil {
					t.Fatal(err)
				}
				if suffix == "-wal" {
					raw = raw[:tc.left(int64(len(raw)))]
				}
				if err := os.WriteFile(copied+suffix, raw, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := sqlitefile.Torn(copied); got != tc.damaged {
				t.Errorf("torn: %v", got)
			}
			after, err := Open(t.Context(), Config{Path: copied})
			if tc.damaged {
				if !errors.Is(err, store.ErrDamaged) {
					t.Errorf("open: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer shut(t, after)
			episodes, err := after.EpisodeRange(t.Context(), scope.Scope{Project: "p", User: "u"}, events.Range{To: 100})
			if err != nil || uint64(len(episodes)) != ordinal(t, after) {
				t.Errorf("%d episodes, ordinal %d, %v", len(episodes), ordinal(t, after), err)
			}
		})
	}
}

func TestADamagedFileIsNamed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "memory.db")
	s, err := Open(t.Context(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 50 {
		if _, err := s.PutEpisode(t.Context(), testEpisode("u", fmt.Sprint(n))); err != nil {
			t.Fatal(err)
		}
	}
	shut(t, s)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, raw := range map[string][]byte{
		"cut": whole[:len(whole)/2], "garbage": append([]byte("garbage, not a database"), whole[23:]...),
	} {
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := Open(t.Context(), Config{Path: path}); !errors.Is(err, store.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
			if err == nil {
				shut(t, s)
			}
		}
	}
}
