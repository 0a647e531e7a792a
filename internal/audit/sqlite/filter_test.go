package sqlite

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"palimpsest/internal/audit/audittest"
	"palimpsest/internal/filter"
	"palimpsest/pkg/scope"
)

// Effects that cannot match are not read whole; what SQL cannot express leaves out
// none.
func TestUnmatched(t *testing.T) {
	t.Parallel()
	l, page := story(t)
	for _, tc := range []struct {
		where string
		kept  []uint64 // revisions
	}{
		{"revision = 2", []uint64{2}}, {"kind = 'add'", []uint64{1}}, {"rule <> 'sleep' AND applied_at > '2026-03-01T12:02:00Z'", []uint64{3}},
		{"NOT (fact_id = 'fact' OR index = 1)", nil}, {"correlation_id IN ('request-1', 'request-4')", []uint64{1, 4}}, {"confidence > 1", []uint64{1, 2, 3, 4}},
	} {
		x, err := filter.ParseWhere(tc.where, filter.Audit)
		if err != nil {
			t.Fatal(err)
		}
		skip, err := l.unmatched(t.Context(), page, x)
		if err != nil {
			t.Fatal(err)
		}
		var kept []uint64
		for _, at := range page {
			if !skip[at.place] {
				kept = append(kept, at.revision)
			}
		}
		if !slices.Equal(kept, tc.kept) {
			t.Errorf("%s: %v, want %v", tc.where, kept, tc.kept)
		}
	}
}

// TestUnmatchedByMany: a filter may have as many values as filters may.
func TestUnmatchedByMany(t *testing.T) {
	t.Parallel()
	l, page := story(t)
	ids := make([]string, filter.MaxValues)
	for i := range ids {
		ids[i] = fmt.Sprint("none-", i)
	}
	for n, e := range map[int]filter.Expr{
		len(page): filter.OneOf(filter.Audit, "correlation_id", ids...), 0: filter.Not{Expr: filter.OneOf(filter.Audit, "correlation_id", ids...)},
	} {
		if skip, err := l.unmatched(t.Context(), page, e); err != nil || len(skip) != n {
			t.Errorf("%d of %d effects are skipped, %v; want %d", len(skip), len(page), err, n)
		}
	}
}

// story is a log of four effects, and a page with all of them.
func story(t *testing.T) (*Log, []spot) {
	t.Helper()
	l, err := Open(t.Context(), Config{Path: filepath.Join(t.TempDir(), "audit.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	if err := l.Write(t.Context(), audittest.LogStory(scope.Scope{Project: "p", User: "u"}, 4, 1)); err != nil {
		t.Fatal(err)
	}
	page, err := l.spots(t.Context(), spot{place: place{project: "p"}}, math.MaxInt64)
	if err != nil {
		t.Fatal(err)
	}
	return l, page
}
