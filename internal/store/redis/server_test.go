package redis

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"palimpsest/internal/embed"
	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

var (
	said0 = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	ana   = scope.Scope{Project: "p", User: "ana"}
)

func tell(t testing.TB, s *Store, id, content string) memory.State {
	t.Helper()
	full := ana
	full.Session = "s"
	put, err := s.PutEpisode(t.Context(), memory.Episode{
		ID: id, Source: "app", Scope: full, Role: events.RoleUser, Content: content, Timestamp: said0, ArrivedAt: said0,
	})
	if err != nil {
		t.Fatal(err)
	}
	return put.State
}

func selAna() scope.Selector { return scope.Under(ana) }

func embedPending(t testing.TB, s *Store, dimensions int) int {
	t.Helper()
	return embedPendingIn(t, s, 0, dimensions)
}

func embedPendingIn(t testing.TB, s *Store, space uint64, dimensions int) int {
	t.Helper()
	list, err := s.PendingVectors(t.Context(), space, 1000)
	if err != nil {
		t.Fatal(err)
	}
	vectors := make([]store.Vector, len(list))
	for i, p := range list {
		vectors[i] = store.Vector{Ref: p.Ref, Values: make([]float32, dimensions)}
		vectors[i].Values[i%dimensions] = 1
	}
	if err := s.PutVectors(t.Context(), vectors); err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func TestASearchThatIsCutShortIsAnError(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	cfg.QueryTimeout = time.Millisecond
	s := openNew(t, cfg)
	p := s.place(ana)
	commands := make([][]any, 0, 200)
	for i := range 40_000 {
		row := append([]any{"HSET", p.row(kindEpisode, fmt.Sprint(i))}, p.scopeFields(kindEpisode, ana)...)
		commands = append(commands, append(row, "ts", i, "ord", i, "oid", ordered(fmt.Sprint(i)), "b", "{}"))
		if len(commands) == cap(commands) {
			if _, err := s.pipe(t.Context(), commands); err != nil {
				t.Fatal(err)
			}
			commands = commands[:0]
		}
	}
	if _, err := s.Recent(t.Context(), scope.Selector{Project: "p"}, store.RecentQuery{Limit: 1000}); !errors.Is(err, errPartial) {
		t.Errorf("Recent: %v, want %v", err, errPartial)
	}
}

func TestRowsThatTheIndexLeavesOutAreTold(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	cfg := testConfig(t)
	cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	s := openNew(t, cfg)
	tell(t, s, "1", "hello")
	full := ana
	full.Session = "s"
	key := s.place(ana).episode(full.Session, "app", "1")
	if _, err := s.call(t.Context(), "HSET", key, "v", "abc"); err != nil {
		t.Fatal(err)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "left rows out") || !strings.Contains(log.String(), "blob size 3") {
		t.Errorf("the log says %q", log.String())
	}
}

func TestAMissingIndexIsDamage(t *testing.T) {
	t.Parallel()
	s := openNew(t, testConfig(t))
	tell(t, s, "1", "hello")
	if _, err := s.call(t.Context(), "FT.DROPINDEX", s.layout().index()); err != nil {
		t.Fatal(err)
	}
	_, search := s.SearchText(t.Context(), scope.Under(ana), "hello", store.SearchQuery{Target: store.Episodes, Limit: 1})
	for name, err := range map[string]error{"search": search, "ping": s.Ping(t.Context())} {
		if !errors.Is(err, store.ErrDamaged) {
			t.Errorf("%s: %v, want ErrDamaged", name, err)
		}
	}
	again := openAt(t, s.cfg) // which fills the index from the rows
	hits, err := again.SearchText(t.Context(), scope.Under(ana), "hello", store.SearchQuery{Target: store.Episodes, Limit: 1})
	if err != nil || len(hits) != 1 {
		t.Errorf("after a reopen: %d hits, %v", len(hits), err)
	}
}

func TestTheFirstVectorDecides(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	cfg.Embedder = embed.Info{}
	s := openNew(t, cfg)
	tell(t, s, "1", "hello")
	embedPending(t, s, 7)
	for _, st := range []*Store{s, openAt(t, cfg)} {
		hits, err := st.SearchVector(t.Context(), scope.Under(ana), []float32{1, 0, 0, 0, 0, 0, 0}, store.SearchQuery{Target: store.Episodes, Limit: 1})
		if err != nil || len(hits) != 1 {
			t.Errorf("%d hits, %v", len(hits), err)
		}
	}
}

func TestAnotherEmbedder(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	s := openNew(t, cfg)
	tell(t, s, "1", "hello")
	tell(t, s, "2", "hello hello")
	embedPending(t, s, 16)
	cfg.Embedder = embed.Info{Name: "other", Version: "1", Dimensions: 8}
	s = openAt(t, cfg)
	if got := s.Spaces().Served.Embedder; got != testEmbedder {
		t.Errorf("the generation is of %s, want that of its first opening", got)
	}
	query := make([]float32, 16)
	query[0] = 1
	hits, err := s.SearchVector(t.Context(), scope.Under(ana), query, store.SearchQuery{Target: store.Episodes, Limit: 9})
	if err != nil || len(hits) != 2 {
		t.Errorf("%d hits, %v", len(hits), err)
	}
}

// TestTwoProcesses checks that a rule which one process watches is applied to the
// rows of another process that was open before.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	one := openNew(t, cfg)
	two := openAt(t, cfg)
	pending := func(rule string) (n int) {
		if err := one.Pending(t.Context(), rule, func(store.Pending) bool { n++; return true }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := pending("turn"); n != 0 {
		t.Errorf("%d pending", n)
	}
	tell(t, two, "1", "hello") // two has never heard of the rule
	if n := pending("turn"); n != 1 {
		t.Errorf("%d pending, want 1", n)
	}
}

func TestHNSWIsExactWithinAScope(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	cfg.Vectors = HNSW
	s := openNew(t, cfg)
	for i := range 40 {
		tell(t, s, fmt.Sprint(i), "hello")
	}
	embedPending(t, s, 16)
	hits, err := s.SearchVector(t.Context(), scope.Under(ana), []float32{0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, store.SearchQuery{Target: store.Episodes, Limit: 40})
	if err != nil || len(hits) != 40 || hits[0].Score < 0.999 || hits[2].Score < 0.999 || hits[3].Score > 0.001 {
		t.Errorf("%d hits, %v", len(hits), err)
	}
}
