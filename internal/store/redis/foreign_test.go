package redis

import (
	"testing"

	"palimpsest/internal/store"
)

// TestIndexOverNothingSkipsForeignKeys: a generation without rows needs no look at
// the keys of others; one with rows has them all found after its index was lost.
func TestIndexOverNothingSkipsForeignKeys(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	s := openNew(t, cfg)
	if rows, err := s.hasRows(t.Context(), s.layout()); rows || err != nil {
		t.Errorf("a new generation has rows: %v, %v", rows, err)
	}
	tell(t, s, "1", "hello 1")
	if rows, err := s.hasRows(t.Context(), s.layout()); !rows || err != nil {
		t.Errorf("no rows: %v", err)
	}
	if _, err := s.call(t.Context(), "FT.DROPINDEX", s.layout().index()); err != nil {
		t.Fatal(err)
	}
	again := openAt(t, cfg)
	tell(t, again, "2", "hello 2")
	hits, err := again.SearchText(t.Context(), selAna(), "hello", store.SearchQuery{Target: store.Episodes, Limit: 9})
	if err != nil || len(hits) != 2 {
		t.Errorf("%d hits, %v", len(hits), err)
	}
}
