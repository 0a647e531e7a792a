package memory

import (
	"testing"
	"time"

	"palimpsest/pkg/events"
)

// A fact that was archived, and not closed, keeps the end that it has.
func TestRestoredAfterArchiving(t *testing.T) {
	t.Parallel()
	day := func(n int) *time.Time {
		at := noon.AddDate(0, 0, n)
		return &at
	}
	for _, row := range []struct {
		name       string
		f          events.Fact
		want       *time.Time
		restoredOn int
	}{
		{"no end", events.Fact{ArchivedAt: day(1)}, nil, 2},
		{"an end that is ahead", events.Fact{ArchivedAt: day(1), ValidUntil: day(9)}, day(9), 2},
		{"an end that has passed", events.Fact{ArchivedAt: day(1), ValidUntil: day(9)}, nil, 10},
		{"closed before its end", events.Fact{ArchivedAt: day(1), ValidUntil: day(2), OwnEnd: day(9)}, day(9), 3},
		{"closed", events.Fact{ArchivedAt: day(1), ValidUntil: day(2)}, nil, 3},
	} {
		got := Restored(row.f, *day(row.restoredOn))
		if got.ArchivedAt != nil || got.OwnEnd != nil || (got.ValidUntil == nil) != (row.want == nil) || row.want != nil && !got.ValidUntil.Equal(*row.want) {
			t.Errorf("%s: valid until %v, want %v", row.name, got.ValidUntil, row.want)
		}
	}
}
