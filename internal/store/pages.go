package store

import (
	"cmp"
	"slices"
)

// ReadPages reads pages of limit rows until enough rows are kept or there are no more, and
// returns at most limit of them. page returns the rows behind last, which is nil for the
// first page; keep may reuse their memory.
func ReadPages[R any](limit int, page func(last *R) ([]R, error), keep func([]R) ([]R, error)) (list []R, err error) {
	for last := (*R)(nil); ; {
		rows, err := page(last)
		if err != nil {
			return nil, err
		}
		read := len(rows)
		if read > 0 {
			end := rows[read-1]
			last = &end
		}
		if rows, err = keep(rows); err != nil {
			return nil, err
		}
		if list = append(list, rows...); read < limit || len(list) >= limit {
			return list[:min(len(list), limit)], nil
		}
	}
}

// Behind returns the cursor of a page of facts: that of the query, or the place of the last
// fact that was read.
func (q FactQuery) Behind(last *Fact) *FactCursor {
	if last == nil {
		return q.Cursor
	}
	return &FactCursor{CreatedAt: last.CreatedAt, ID: last.ID}
}

// NewestFacts returns the first limit facts in the order of [FactReader.Facts].
func NewestFacts(list []Fact, limit int) []Fact {
	slices.SortStableFunc(list, func(a, b Fact) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID))
	})
	return list[:min(len(list), limit)]
}

// SortVersions orders versions by (id, revision), and leaves out the second of two.
func SortVersions(list []Fact) []Fact {
	order := func(a, b Fact) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Revision, b.Revision)) }
	slices.SortStableFunc(list, order)
	return slices.CompactFunc(list, func(a, b Fact) bool { return order(a, b) == 0 })
}

// History is an earlier version. It has no vector, and its accesses, if it had any, count
// for its successor.
func History(f Fact) Fact {
	f.Strength, f.LastAccessed = f.Confidence, f.CreatedAt
	return f
}
