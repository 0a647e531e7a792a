package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/cursor"
	"palimpsest/internal/store"
)

func testCursors(t *testing.T, s suite) {
	db := s.open(t)
	t.Run("set and read", func(t *testing.T) {
		for _, want := range []cursor.Cursor{
			{Stream: "EPISODES@2026", Sequence: 1 << 40, Starts: 2, Alone: 7, Deaths: 1}, {Stream: "EPISODES@2027", Sequence: 3},
		} {
			if err := db.SetCursor(t.Context(), "a reader/🦊", 0, want); err != nil {
				t.Fatal(err)
			}
			got, err := db.ReadCursors(t.Context(), "unknown", "a reader/🦊")
			if diff := cmp.Diff([]cursor.Cursor{{}, want}, got); err != nil || diff != "" {
				t.Error(err, diff)
			}
		}
	})
	t.Run("went back", func(t *testing.T) {
		for _, c := range []struct {
			least, sequence uint64
			want            error
		}{{0, 5, nil}, {5, 9, nil}, {9, 9, nil}, {10, 11, cursor.ErrWentBack}, {9, 3, nil}, {9, 12, cursor.ErrWentBack}} {
			if err := db.SetCursor(t.Context(), "back", c.least, cursor.Cursor{Sequence: c.sequence}); !errors.Is(err, c.want) {
				t.Errorf("SetCursor to %d with at least %d stored: %v, want %v", c.sequence, c.least, err, c.want)
			}
		}
		got, err := db.ReadCursors(t.Context(), "back")
		if diff := cmp.Diff([]cursor.Cursor{{Sequence: 3}}, got); err != nil || diff != "" {
			t.Error(err, diff)
		}
	})
	t.Run("one process has all", func(t *testing.T) {
		readers := []string{"r1", "r2", "r3"}
		for range 2 {
			got, err := db.Share(t.Context(), "alone", readers, "p1", time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(readers, slices.Sorted(slices.Values(got))); diff != "" {
				t.Error(diff)
			}
		}
	})
	if s.opts.Skip["Shares"] == "" {
		t.Run("shares", func(t *testing.T) { testShares(t, db) })
	}
}

// testShares: processes that come and go have disjoint shares of even size in the
// end, and the readers of one that left are taken over.
func testShares(t *testing.T, db store.Store) {
	readers := make([]string, 16)
	for i := range readers {
		readers[i] = fmt.Sprintf("reader-%02d", i)
	}
	settle := func(processes ...string) map[string][]string {
		t.Helper()
		shares := map[string][]string{}
		for range 3 { // give back, take, see
			for _, p := range processes {
				mine, err := db.Share(t.Context(), "even", readers, p, time.Minute)
				if err != nil {
					t.Fatal(err)
				}
				shares[p] = mine
			}
		}
		var all []string
		for p, mine := range shares {
			if most := (len(readers) + len(processes) - 1) / len(processes); len(mine) > most {
				t.Errorf("%s has %d of %d", p, len(mine), most)
			}
			all = append(all, mine...)
		}
		if diff := cmp.Diff(readers, slices.Sorted(slices.Values(all))); diff != "" {
			t.Errorf("%d processes: %s", len(processes), diff)
		}
		return shares
	}
	settle("p1")
	settle("p1", "p2")
	settle("p1", "p2", "p3")
	if mine, err := db.Share(t.Context(), "even", readers, "p1", 0); err != nil || len(mine) > 0 {
		t.Errorf("a process that left has %v, %v", mine, err)
	}
	settle("p2", "p3")
	// One that does not come back loses its share when its time is over.
	if _, err := db.Share(t.Context(), "even", readers, "p3", time.Millisecond); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for mine := []string(nil); len(mine) < len(readers); {
		var err error
		if mine, err = db.Share(t.Context(), "even", readers, "p2", time.Minute); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatalf("p2 has %d after p3 is gone", len(mine))
		}
	}
}
