package sqlite

import (
	"testing"

	"pgregory.net/rapid"
)

type numberKey int64

func (k numberKey) changes() int64 { return int64(k) / 2 }

// TestShelf checks that under any sequence of reads, puts, changes and evictions no
// answer is older than the last change.
func TestShelf(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := newLRU[numberKey, int](rapid.Int64Range(0, 8*(bookBytes+10)).Draw(t, "budget"))
		truth := map[numberKey]int{}
		var pending []func()
		key := rapid.Custom(func(t *rapid.T) numberKey { return numberKey(rapid.Int64Range(0, 9).Draw(t, "key")) })
		for range rapid.IntRange(0, 80).Draw(t, "steps") {
			k := key.Draw(t, "at")
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0: // a read that misses, and ends later
				var held bool
				marks := s.get([]numberKey{k}, func(_, v int) {
					if held = true; v != truth[k] {
						t.Fatalf("%d is %d, want %d", k, v, truth[k])
					}
				})
				if v := truth[k]; !held {
					pending = append(pending, func() { s.put(k, v, 10, &marks) })
				}
			case 1:
				if len(pending) > 0 {
					pending[0]()
					pending = pending[1:]
				}
			case 2: // a write that is followed up
				truth[k]++
				if s.change(k.changes()) {
					s.edit([]numberKey{k}, func(_, v int) (int, int64, bool) { return v + 1, 10, true })
				}
			case 3: // a write after which the value is read anew
				truth[k]++
				if s.change(k.changes()) {
					s.edit([]numberKey{k}, func(int, int) (v int, size int64, keep bool) { return })
				}
			}
			count := 0
			for _, n := range s.counts {
				count += n
			}
			if s.used > s.budget || len(s.held) != s.recent.Len() || count != len(s.held) || s.used != int64(len(s.held))*(bookBytes+10) {
				t.Fatalf("%d of %d bytes, %d held, %d in order, %d counted", s.used, s.budget, len(s.held), s.recent.Len(), count)
			}
		}
	})
}
