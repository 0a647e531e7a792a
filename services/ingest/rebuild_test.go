package ingest

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/internal/store/sqlite"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func openStore(t *testing.T, building bool) *sqlite.Store {
	t.Helper()
	st, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "memory.db"), Building: building})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

func over(t *testing.T, st *sqlite.Store) *Service {
	t.Helper()
	s, err := New(Config{}, Deps{Episodes: st, Vectors: st, Embedder: &fakeEmbedder{}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// recited puts n episodes into each of three scopes of two projects.
func recited(t *testing.T, st *sqlite.Store, n int) {
	t.Helper()
	for i := range n {
		for _, s := range []scope.Scope{
			{Project: "p", User: "ann", Session: fmt.Sprint(i % 3)}, {Project: "p", User: "bob"}, {Project: "q", User: "ann"},
		} {
			at := noon.Add(time.Duration(i) * time.Second)
			_, err := st.PutEpisode(t.Context(), memory.Episode{
				ID: fmt.Sprint(i), Source: "app", Scope: s, Role: events.RoleUser, Content: fmt.Sprintf("number %d", i), Timestamp: at, ArrivedAt: at,
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestAdoptKeepsOrdinals: of a stream that dropped the oldest, the earlier store
// alone knows how to count.
func TestAdoptKeepsOrdinals(t *testing.T) {
	t.Parallel()
	const n = pageSize + 7
	live, made := openStore(t, true), openStore(t, true)
	recited(t, live, n)
	settle := func(st *sqlite.Store) {
		t.Helper()
		if err := st.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	settle(live)
	moved := func() int {
		t.Helper()
		count, err := Moved(t.Context(), live, made)
		if err != nil {
			t.Fatal(err)
		}
		return count
	}
	if got := moved(); got != 3*n {
		t.Errorf("%d of %d moved to an empty store", got, 3*n)
	}
	read := 0
	if err := over(t, made).Adopt(t.Context(), live, func() { read++ }); err != nil {
		t.Fatal(err)
	}
	settle(made)
	if got := moved(); got != 0 || read != 3*n {
		t.Errorf("%d moved of %d adopted, want 0 of %d", got, read, 3*n)
	}
	recited(t, live, n+1)
	settle(live)
	if got := moved(); got != 3 {
		t.Errorf("%d moved, want 3 that are missing", got)
	}
	recited(t, made, n+2)
	settle(made)
	if got := moved(); got != 0 {
		t.Errorf("%d moved: what comes behind is no matter", got)
	}
}

// TestEmbedAllLeavesNothing, however many rounds it takes.
func TestEmbedAllLeavesNothing(t *testing.T) {
	t.Parallel()
	const n = embedRound/3 + 10
	st := openStore(t, true)
	recited(t, st, n)
	done := 0
	if err := over(t, st).EmbedAll(t.Context(), st.Settle, func(some int) { done += some }); err != nil {
		t.Fatal(err)
	}
	stats, err := st.Stats(context.Background())
	if err != nil || stats.VectorsPending != 0 || done != 3*n {
		t.Errorf("%d embedded of %d, %d left, %v", done, 3*n, stats.VectorsPending, err)
	}
}
