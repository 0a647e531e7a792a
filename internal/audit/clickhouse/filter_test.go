package clickhouse

import (
	"math"
	"slices"
	"strings"
	"testing"

	"palimpsest/internal/audit/audittest"
	"palimpsest/internal/filter"
	"palimpsest/internal/testengine/clickhouseserver"
	"palimpsest/pkg/scope"
)

// Effects that cannot match are not read whole; what the server is not asked leaves
// out none.
func TestMatched(t *testing.T) {
	t.Parallel()
	dsn := clickhouseserver.DSN(t)
	l, sel := begin(t, Config{DSN: dsn}), scope.Selector{Project: "p"}
	write(t, l, audittest.LogStory(scope.Scope{Project: "p", User: "u"}, 4, 1)...)
	page, err := l.spots(t.Context(), sel, spot{}, math.MaxInt64)
	if err != nil {
		t.Fatal(err)
	}
	long := "fact_id = '" + strings.Repeat("x", maxValue+1) + "'"
	for _, tc := range []struct {
		where string
		kept  []uint64 // revisions
	}{
		{"revision = 2", []uint64{2}}, {"kind = 'add'", []uint64{1}}, {"rule <> 'sleep' AND applied_at > '2026-03-01T12:02:00Z'", []uint64{3}},
		{"NOT (fact_id = 'fact' OR index = 1)", nil}, {"correlation_id IN ('request-1', 'request-4')", []uint64{1, 4}}, {"confidence > 1", nil}, {"sources = 'episode-3'", []uint64{3}}, {long, []uint64{1, 2, 3, 4}},
	} {
		x, err := filter.ParseWhere(tc.where, filter.Audit)
		if err != nil {
			t.Fatal(err)
		}
		left, err := l.matched(t.Context(), "p", slices.Clone(page), x)
		if err != nil {
			t.Fatal(err)
		}
		var kept []uint64
		for _, at := range left {
			kept = append(kept, at.revision)
		}
		if !slices.Equal(kept, tc.kept) {
			t.Errorf("%s: %v, want %v", tc.where, kept, tc.kept)
		}
	}
	// The server drops records by age, and keeps effects.
	exec(t, connect(t, dsn), "ALTER TABLE audit DELETE WHERE revision < 4 SETTINGS mutations_sync = 2")
	x := filter.OneOf(filter.Audit, "rule", "sleep")
	var found []uint64
	for e, err := range l.Between(t.Context(), sel, 0, math.MaxInt64, x) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, e.Data.Revision)
	}
	if want := []uint64{2, 4}; !slices.Equal(found, want) {
		t.Errorf("without records: %v, want %v", found, want)
	}
}
