package filter_test

import (
	"testing"

	"palimpsest/internal/filter"
	"palimpsest/internal/filter/filtertest"
)

// documents are rows over random facts and episodes, by field.
func documents(s filtertest.Source, n int) []filter.Row {
	rows := []filter.Row{row, func(string) any { return nil }}
	for range n {
		m, text := s.Metadata(), s.Fact(1)
		rows = append(rows, func(field string) any {
			switch field {
			case "metadata":
				return m
			case "category":
				return text.Category
			case "confidence":
				return text.Confidence
			case "created_at":
				return text.CreatedAt
			case "confirmed":
				return text.Confirmed
			case "session":
				return text.SessionIDs
			}
			return nil
		})
	}
	return rows
}

var documentFields = []string{"metadata", "metadata", "metadata", "category", "confidence", "created_at", "confirmed", "session", "kind"}

// TestWeakenedHolds: what a filter is weakened to holds for every row that the
// filter matches, whatever a backend leaves out, and is the filter itself for one
// that leaves out nothing.
func TestWeakenedHolds(t *testing.T) {
	t.Parallel()
	type condition = func(filter.Row) bool
	for seed := range uint64(2000) {
		s := filtertest.New(seed)
		lossy := seed%2 == 0
		backend := filter.Backend[condition]{
			Cond: func(c filter.Cond, negated bool) (condition, bool) {
				if c.Op == filter.Ne || c.Op == filter.Nin {
					t.Errorf("seed %d: %s is not normalised", seed, c.Op)
				}
				switch {
				case lossy && s.IntN(4) == 0:
					return nil, false
				case lossy && s.IntN(4) == 0:
					return func(filter.Row) bool { return true }, true
				}
				return func(r filter.Row) bool { return filter.Match(c, r) != negated }, true
			},
			And: func(list []condition) condition {
				return func(r filter.Row) bool {
					for _, c := range list {
						if !c(r) {
							return false
						}
					}
					return true
				}
			},
			Or: func(list []condition) condition {
				return func(r filter.Row) bool {
					for _, c := range list {
						if c(r) {
							return true
						}
					}
					return false
				}
			},
			None: func(filter.Row) bool { return false },
		}
		e := s.Filter(filter.Memory, documentFields)
		weak, ok := filter.Weaken(e, backend)
		if !ok {
			weak = func(filter.Row) bool { return true }
		}
		for _, r := range documents(s, 5) {
			if match, held := filter.Match(e, r), weak(r); match && !held || !lossy && match != held {
				t.Fatalf("seed %d: %s matches: %v, weakened: %v", seed, filter.JSON(e), match, held)
			}
		}
	}
}

// TestWrittenMeansTheSame: a filter that is written and read again matches what it
// matched.
func TestWrittenMeansTheSame(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2000) {
		s := filtertest.New(seed)
		e := s.Filter(filter.Memory, documentFields)
		again, err := filter.ParseJSON(filter.JSON(e), filter.Memory)
		if err != nil {
			t.Fatalf("seed %d: %s: %v", seed, filter.JSON(e), err)
		}
		for _, r := range documents(s, 5) {
			if filter.Match(e, r) != filter.Match(again, r) {
				t.Fatalf("seed %d: %s", seed, filter.JSON(e))
			}
		}
	}
}
