package bench

import (
	"slices"
	"testing"
	"time"

	"palimpsest/internal/bench/bare"
	"palimpsest/internal/embed/local"
	"palimpsest/internal/store"
	"palimpsest/internal/store/sqlite"
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

// TestBothSidesSearchTheSame: the bare query and the store find the same rows, and
// so do the scan and the store.
func TestBothSidesSearchTheSame(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openStore(t, dir)
	defer s.Close()
	other, err := bare.OpenSearch(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	b := bench{Parts: Parts{Embedder: local.New()}}
	if err := b.fill(t.Context(), s, other, 2*effectFacts); err != nil {
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
		rows, err := other.Match(t.Context(), question, searchLimit)
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
		nearest := other.Nearest(vectors[i], searchLimit)
		if got := ids(hits); len(nearest) != searchLimit || got[0] != factID(int(nearest[0])-1) {
			t.Errorf("%q: nearest %v, bare %v", question, got, nearest)
		}
	}
}

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }
