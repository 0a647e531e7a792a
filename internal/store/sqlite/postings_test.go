package sqlite

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestPostingList compares the list with a map, and checks that copies which readers
// hold do not change.
func TestPostingList(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := listOf(nil)
		want := map[int64]posting{}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			row := rapid.Int64Range(1, 12).Draw(t, "row")
			before, copied := list.postings, slices.Clone(list.postings)
			if rapid.IntRange(0, 3).Draw(t, "cut") == 0 {
				list = list.cut(row)
				delete(want, row)
			} else {
				p := newPosting(docID(row, rapid.IntRange(1, 2000).Draw(t, "length")), rapid.IntRange(1, 5000).Draw(t, "count"))
				list = list.set(p)
				want[row] = p
			}
			if !slices.Equal(before, copied) {
				t.Fatalf("%v became %v under a reader", copied, before)
			}
		}
		if len(list.postings) != len(want) || !slices.IsSorted(list.postings) {
			t.Fatalf("%v, want %v", list.postings, want)
		}
		for _, p := range list.postings {
			if want[p.row()] != p || p.length() < list.shortest || p.count() > list.most {
				t.Fatalf("row %d: %v, want %v, bounds %d and %d", p.row(), p, want[p.row()], list.shortest, list.most)
			}
		}
	})
}

func TestUpTo(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var list []posting
		for _, row := range rapid.SliceOfDistinct(rapid.Int64Range(1, 99), rapid.ID[int64]).Draw(t, "rows") {
			list = append(list, newPosting(docID(row, 7), 1))
		}
		slices.Sort(list)
		row := rapid.Int64Range(0, 100).Draw(t, "row")
		want := slices.Clone(list)
		want = slices.DeleteFunc(want, func(p posting) bool { return p.row() > row })
		if got := upTo(list, row); !slices.Equal(got, want) {
			t.Fatalf("up to %d: %v, want %v", row, got, want)
		}
	})
}

func FuzzParsePostings(f *testing.F) {
	f.Add("1025 1025 2049")
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		total := 0
		for _, p := range parsePostings([]byte(s)) {
			total += p.count()
		}
		if want := strings.Count(s, " ") + 1; s != "" && total != want && want <= maxCount {
			t.Errorf("%q has %d postings", s, total)
		}
	})
}
