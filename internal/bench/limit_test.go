package bench

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/embed/local"
	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/internal/store/sqlite"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func openStore(t *testing.T, dir string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: memoryFile(dir), Embedder: local.New().Info()})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestTheLimitInsertsWhatTheStoreStored: the same schema with every index, the
// same rows, the same documents in the text index.
func TestTheLimitInsertsWhatTheStoreStored(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openStore(t, dir)
	for i, m := range flood(2*floodScopes + 7) {
		_, err := s.PutEpisode(t.Context(), memory.Episode{
			ID: fmt.Sprintf("id-%d", i), Source: "test", Role: events.RoleUser, Content: string(m.body), Timestamp: time.Unix(int64(i), 0),
			Scope: scope.Scope{Project: "p", User: fmt.Sprint(i % floodScopes), Session: "s1"},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	want, err := readRows(t.Context(), memoryFile(dir))
	if err != nil {
		t.Fatal(err)
	}
	if len(want.episodes) != 2*floodScopes+7 || len(want.schema) < 20 {
		t.Fatalf("%d episodes, %d statements", len(want.episodes), len(want.schema))
	}
	raw := t.TempDir()
	if took, _, err := want.insert(t.Context(), raw); err != nil || took <= 0 {
		t.Fatalf("took %v, %v", took, err)
	}
	got, err := readRows(t.Context(), memoryFile(raw))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(rows{}, indexed{}, inserts{})); diff != "" {
		t.Error(diff)
	}
}

// TestBothSidesSearchTheSame: the bare query and the store find the same rows, and
// so do the scan and the store.
func TestBothSidesSearchTheSame(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openStore(t, dir)
	defer s.Close()
	bare, err := openBareSearch(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer bare.close()
	b := bench{Parts: Parts{Embedder: local.New()}}
	if err := b.fill(t.Context(), s, bare, 2*effectFacts); err != nil {
		t.Fatal(err)
	}
	q := store.SearchQuery{Target: store.Facts, Limit: searchLimit, ValidAt: time.Now()}
	asked := questions(1, 2)
	vectors, err := local.New().Embed(t.Context(), asked)
	if err != nil {
		t.Fatal(err)
	}
	ids := func(hits []store.Hit) (ids []string) {
		for _, h := range hits {
			ids = append(ids, h.Fact.ID)
		}
		return ids
	}
	for i, question := range asked {
		rows, err := bare.query(t.Context(), question)
		if err != nil {
			t.Fatal(err)
		}
		hits, err := s.SearchText(t.Context(), scope.Under(searched), question, q)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, row := range rows {
			want = append(want, factID(int(row)-1))
		}
		// Beyond the limit, equal scores may be cut off differently.
		if got := ids(hits); len(got) != len(want) || len(got) < searchLimit && !slices.Equal(sorted(got), sorted(want)) {
			t.Errorf("%q: found %v, bare %v", question, got, want)
		}
		hits, err = s.SearchVector(t.Context(), scope.Under(searched), vectors[i], q)
		if err != nil {
			t.Fatal(err)
		}
		nearest := bare.scan(vectors[i])
		if got := ids(hits); len(nearest) != searchLimit || got[0] != factID(nearest[0].row) {
			t.Errorf("%q: nearest %v, bare %v", question, got, nearest)
		}
	}
}

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }
