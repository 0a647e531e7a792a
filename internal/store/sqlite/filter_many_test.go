package sqlite

import (
	"path/filepath"
	"testing"

	"palimpsest/internal/filter"
	"palimpsest/internal/store"
)

// TestFilterOfManyNumbers: a filter may have as many values as filters may.
func TestFilterOfManyNumbers(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), Config{Path: filepath.Join(t.TempDir(), "memory.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	field, err := filter.Memory.Field("revision")
	if err != nil {
		t.Fatal(err)
	}
	many := filter.Cond{Field: field, Op: filter.In}
	for n := range filter.MaxValues {
		many.Values = append(many.Values, filter.Value{Type: filter.Number, Number: float64(n)})
	}
	for _, x := range []filter.Expr{many, filter.Not{Expr: many}} {
		got, err := s.factPage(t.Context(), 1, store.FactQuery{Limit: 1, Filter: &store.Filter{Expr: x}})
		if err != nil || len(got) != 0 {
			t.Errorf("%v, %v", got, err)
		}
	}
}
