package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"palimpsest/internal/embed"
	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func testEpisode(user, id string) memory.Episode {
	return memory.Episode{
		ID: id, Source: "app", Scope: scope.Scope{Project: "p", User: user, Session: "s"}, Role: events.RoleUser,
		Content: "hello " + id, Timestamp: time.Unix(1, 0), ArrivedAt: time.Unix(1, 0),
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "memory.db")
	for name, cfg := range map[string]Config{
		"no path": {}, "synchronous": {Path: path, Synchronous: "off"}, "memory": {Path: path, VectorMemory: -1},
	} {
		if s, err := Open(t.Context(), cfg); err == nil {
			_ = s.Close()
			t.Errorf("%s was taken", name)
		}
	}
}

func TestOpenIsExclusive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := Config{Path: filepath.Join(dir, "memory.db")}
	s := openAt(t, cfg)
	_, err := Open(t.Context(), cfg)
	if !errors.Is(err, store.ErrLocked) || !strings.Contains(err.Error(), dir) {
		t.Errorf("second open: %v, want ErrLocked naming %s", err, dir)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	openAt(t, cfg)
}

func TestOpenNewerSchema(t *testing.T) {
	t.Parallel()
	cfg := Config{Path: filepath.Join(t.TempDir(), "memory.db")}
	s := openAt(t, cfg)
	if err := s.write(t.Context(), func(w *writer) error { return w.exec("PRAGMA user_version = 999") }); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a refusal lets go of the lock
		if _, err := Open(t.Context(), cfg); !errors.Is(err, store.ErrNewer) {
			t.Errorf("open: %v, want ErrNewer", err)
		}
	}
}

func TestOpenPathWithMetacharacters(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a b?c#d%20e", "ünï'code")
	openAt(t, Config{Path: filepath.Join(dir, "memory.db")})
	if _, err := os.Stat(filepath.Join(dir, "memory.db")); err != nil {
		t.Error(err)
	}
}

func TestAnotherEmbedder(t *testing.T) {
	t.Parallel()
	cfg := Config{Path: filepath.Join(t.TempDir(), "memory.db"), Embedder: testEmbedder}
	reopen := func(s *Store, change func(*Config)) (*Store, error) {
		t.Helper()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		change(&cfg)
		return Open(t.Context(), cfg)
	}
	s := openAt(t, cfg)
	e := testEpisode("ana", "1")
	if _, err := s.PutEpisode(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	s, err := reopen(s, func(c *Config) { c.Embedder.Version = "2" })
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Spaces().Served.Embedder; got != testEmbedder {
		t.Errorf("the store is of %s, want that of its first opening", got)
	}
	vector := store.Vector{Ref: store.VectorRef{Target: store.Episodes, Scope: e.Scope, Source: "app", ID: "1"}, Values: make([]float32, 16)}
	if err := s.PutVectors(t.Context(), []store.Vector{vector}); err != nil {
		t.Fatal(err)
	}
	if s, err = reopen(s, func(c *Config) { c.Embedder.Dimensions = 8 }); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.PutVectors(t.Context(), []store.Vector{vector}); err != nil {
		t.Errorf("put into the space that is served: %v", err)
	}
}

// TestSpaceOfMany: the queue of a space under construction is filled step by step,
// with each row once.
func TestSpaceOfMany(t *testing.T) {
	t.Parallel()
	const rows = 2*fillRows + 10
	cfg := Config{Path: filepath.Join(t.TempDir(), "memory.db"), Embedder: testEmbedder}
	s := openAt(t, cfg)
	list := make([]memory.Episode, rows)
	for i := range list {
		list[i] = testEpisode("ana", strconv.Itoa(i))
	}
	if _, err := s.PutEpisodes(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	pending, err := s.PendingVectors(t.Context(), 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.PutVectors(t.Context(), []store.Vector{{Ref: pending[0].Ref, Values: make([]float32, 16)}}); err != nil {
		t.Fatal(err)
	}
	if err := s.BuildSpace(t.Context(), embed.Info{Name: "other", Version: "1", Dimensions: 4}); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for round := 0; ; round++ {
		stats, err := s.Stats(t.Context())
		if err != nil || stats.VectorsBuilding != uint64(rows-len(seen)) {
			t.Fatalf("%d are pending after %d, %v", stats.VectorsBuilding, len(seen), err)
		}
		pending, err := s.PendingVectors(t.Context(), s.Spaces().Next.ID, 3000)
		if err != nil {
			t.Fatal(err)
		}
		if len(pending) == 0 {
			break
		}
		vectors := make([]store.Vector, len(pending))
		for i, p := range pending {
			if seen[p.Ref.ID] {
				t.Fatalf("%s is pending again", p.Ref.ID)
			}
			seen[p.Ref.ID] = true
			vectors[i] = store.Vector{Ref: p.Ref, Values: make([]float32, 4)}
		}
		if err := s.PutVectors(t.Context(), vectors); err != nil {
			t.Fatal(err)
		}
		if round == 1 {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = openAt(t, cfg)
		}
	}
	if len(seen) != rows {
		t.Errorf("%d rows were pending, want %d", len(seen), rows)
	}
}

func TestFileGone(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(path string) error{
		"removed":     os.Remove,
		"replaced":    func(path string) error { return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o600)) },
		"log removed": func(path string) error { return os.Remove(path + "-wal") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "memory.db")
			s := openAt(t, Config{Path: path})
			if err := s.Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := harm(path); err != nil {
				t.Fatal(err)
			}
			select {
			case <-s.Gone():
			case <-time.After(time.Second):
				t.Fatal("not noticed within 1 s")
			}
			for what, err := range map[string]error{"Ping": s.Ping(t.Context()), "Touch": s.Touch(t.Context(), testEpisode("a", "").Scope.Fact(), nil, time.Now())} {
				if err == nil || !strings.Contains(err.Error(), path) {
					t.Errorf("%s: %v, want an error naming %s", what, err, path)
				}
			}
		})
	}
}

func TestFailureIsIsolated(t *testing.T) {
	t.Parallel()
	s := openAt(t, Config{Path: filepath.Join(t.TempDir(), "memory.db")})
	hold, held := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = s.write(context.Background(), func(*writer) error { close(held); <-hold; return nil })
	})
	<-held
	// These wait together, so they share a transaction.
	boom := errors.New("boom")
	errs := make([]error, 30)
	for i := range errs {
		wg.Go(func() {
			errs[i] = s.write(context.Background(), func(w *writer) error {
				if _, err := w.putEpisode(mustPrepare(t, s, testEpisode("ana", fmt.Sprint(i)))); err != nil {
					return err
				}
				w.then(func() { errs[i] = errors.Join(errs[i], errIf(i%3 == 0, "its hook ran")) })
				if i%3 == 0 {
					return boom
				}
				return nil
			})
		})
	}
	for deadline := time.Now().Add(10 * time.Second); len(s.queue) < len(errs); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d writes wait, want %d", len(s.queue), len(errs))
		}
	}
	close(hold)
	wg.Wait()
	for i, err := range errs {
		if errors.Is(err, boom) != (i%3 == 0) || i%3 != 0 && err != nil {
			t.Errorf("write %d: %v", i, err)
		}
	}
	list, err := s.EpisodeRange(t.Context(), testEpisode("ana", "").Scope.Fact(), events.Range{To: 100})
	if err != nil || len(list) != 20 {
		t.Fatalf("%d episodes, %v", len(list), err)
	}
	for i, e := range list {
		if e.Ordinal != uint64(i+1) {
			t.Errorf("episode %d has ordinal %d", i, e.Ordinal)
		}
	}
	state, err := s.State(t.Context(), testEpisode("ana", "").Scope.Fact())
	if err != nil || state.LastOrdinal != 20 {
		t.Errorf("state = %+v, %v", state, err)
	}
}

func errIf(cond bool, text string) error {
	if cond {
		return errors.New(text)
	}
	return nil
}

func mustPrepare(t *testing.T, s *Store, e memory.Episode) newEpisode {
	t.Helper()
	n, err := s.prepareEpisode(e)
	if err != nil {
		t.Error(err)
	}
	return n
}

func TestDiskFull(t *testing.T) {
	t.Parallel()
	s := openAt(t, Config{Path: filepath.Join(t.TempDir(), "memory.db")})
	limit := func(pages string) {
		t.Helper()
		var n int
		err := s.write(t.Context(), func(w *writer) error {
			_, err := w.one("PRAGMA max_page_count = "+pages, nil, &n)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	limit("1") // the pages there are
	big := testEpisode("ana", "big")
	big.Content = strings.Repeat("x", 1<<20)
	if _, err := s.PutEpisode(t.Context(), big); !errors.Is(err, store.ErrFull) {
		t.Errorf("put: %v, want ErrFull", err)
	}
	limit("1000000")
	if _, err := s.PutEpisode(t.Context(), big); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

func TestPragmas(t *testing.T) {
	t.Parallel()
	s := openAt(t, Config{Path: filepath.Join(t.TempDir(), "memory.db"), Synchronous: "full"})
	for pragma, want := range map[string]string{"page_size": pageBytes, "journal_mode": "wal", "synchronous": "2"} {
		var got string
		err := s.write(t.Context(), func(w *writer) error {
			_, err := w.one("PRAGMA "+pragma, nil, &got)
			return err
		})
		if err != nil || got != want {
			t.Errorf("%s = %q, %v, want %q", pragma, got, err, want)
		}
	}
}

// TestOpenQueueOfSchema8: texts that an earlier version queued have their turn.
func TestOpenQueueOfSchema8(t *testing.T) {
	t.Parallel()
	cfg := Config{Path: filepath.Join(t.TempDir(), "memory.db")}
	s := openAt(t, cfg)
	if _, err := s.PutEpisode(t.Context(), testEpisode("ana", "1")); err != nil {
		t.Fatal(err)
	}
	err := s.write(t.Context(), func(w *writer) error {
		for _, change := range []string{
			"DROP INDEX vector_queue_turns", "DROP INDEX vector_queue_refused", "ALTER TABLE vector_queue DROP COLUMN refused",
			"ALTER TABLE vector_queue DROP COLUMN project", "DROP TABLE episode_vectors_2", "DROP TABLE fact_vectors_2",
			"DROP TABLE vector_queue_2", "DROP INDEX entities_to_describe", "ALTER TABLE entities DROP COLUMN describe_at", "PRAGMA user_version = 8",
		} {
			if err := w.exec(change); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openAt(t, cfg)
	if list, err := s.PendingVectors(t.Context(), 0, 9); err != nil || len(list) != 1 || list[0].Text != "hello 1" {
		t.Errorf("pending = %v, %v", list, err)
	}
}

// TestOpenEntitiesOfSchema10: entities that an earlier version wrote are due for a
// summary.
func TestOpenEntitiesOfSchema10(t *testing.T) {
	t.Parallel()
	cfg := Config{Path: filepath.Join(t.TempDir(), "memory.db")}
	s := openAt(t, cfg)
	ana := scope.Scope{Project: "default", User: "ana"}
	seen := time.Date(2026, 3, 1, 12, 0, 0, 0, time.FixedZone("", 2*60*60))
	effect := events.EffectCommitted{Header: events.Header{Scope: ana}, Revision: 1, Rule: "turn", CommittedAt: seen}
	for id, mentions := range map[string]uint64{"seldom": 2, "often": 3, "told": 4, "me": 5} {
		e := events.Entity{ID: id, CanonicalName: "name " + id, MentionCount: mentions, FirstSeen: seen, LastUpdated: seen}
		switch id {
		case "told":
			e.Summary = "It is told."
		case "me":
			e.CanonicalName = memory.SubjectUser
		}
		effect.Entities = append(effect.Entities, e)
	}
	if err := s.Apply(t.Context(), effect, 1); err != nil {
		t.Fatal(err)
	}
	err := s.write(t.Context(), func(w *writer) error {
		return errors.Join(w.exec("DROP INDEX entities_to_describe"), w.exec("ALTER TABLE entities DROP COLUMN describe_at"), w.exec("PRAGMA user_version = 10"))
	})
	if err = errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	s = openAt(t, cfg)
	for at, want := range map[time.Time]int{seen: 1, seen.Add(-time.Second): 0} {
		list, err := s.Undescribed(t.Context(), store.DecayQuery{At: at, Limit: 9})
		if err != nil || len(list) != want || want == 1 && list[0].ID != "often" {
			t.Errorf("at %v: %v, %v", at, list, err)
		}
	}
}
