package terminal

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	table := NewTable(&out, "ID", "TEXT", "N")
	table.Row("1", "a\n\tb\x1b[31m", 7)
	table.FaintRow("1000", "東京 👩‍🔬", "")
	table.Row("é", "", 8)
	table.Flush()
	want := "ID    TEXT      N\n1     a b [31m  7\n1000  東京 👩‍🔬\né               8\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAgo(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 4, 2, 12, 0, 0, 0, time.UTC)
	for at, want := range map[time.Time]string{
		{}:                            "-",
		now:                           "now",
		now.Add(-90 * time.Second):    "1 minute ago",
		now.Add(-3 * time.Hour):       "3 hours ago",
		now.Add(-15 * 24 * time.Hour): "2 weeks ago",
		now.Add(26 * time.Hour):       "1 day from now",
	} {
		if got := Ago(at, now); got != want {
			t.Errorf("%v: %q, want %q", at, got, want)
		}
	}
}
