package sqlite

import (
	"cmp"
	"slices"
	"sort"

	"palimpsest/internal/lex"
)

// slack widens bounds by more than rounding can narrow them.
const slack = 1 + 1e-9

// bm25 ranks the documents of some places for a query's terms by [lex.BM25], whose texts
// are those of all places together.
type bm25 struct {
	lists   [][]postingList // by place, then by term
	weights []float64       // by term: everything that is the same for all documents
	norms   [maxLength + 1]float64
}

func newBM25(all corpus, lists []postingList, terms int) *bm25 {
	b := &bm25{lists: slices.Collect(slices.Chunk(lists, terms)), weights: make([]float64, terms)}
	counts := lex.BM25{Texts: float64(all.docs), Terms: float64(all.terms)}
	for length := range b.norms {
		b.norms[length] = counts.Norm(float64(length))
	}
	for i := range b.weights {
		held := 0
		for _, place := range b.lists {
			held += len(place[i].postings)
		}
		b.weights[i] = counts.Weight(float64(held))
	}
	return b
}

func (b *bm25) score(term, count, length int) float64 {
	f := float64(count)
	return b.weights[term] * f / (f + b.norms[length])
}

// rank implements [ranker].
func (b *bm25) rank(n int, after candidate) []candidate {
	best := top{n: n, after: after}
	for _, lists := range b.lists {
		newMerge(b, lists).into(&best)
	}
	return best.take()
}

// merge walks the posting lists of one place side by side, from the newest row
// to the oldest: of documents that score the same the newer is better, so that
// those that follow change nothing. It is MaxScore (Turtle and Flood 1995): a
// document that occurs in none but the lists whose bounds together stay under
// the worst of the best so far cannot join them, so that the long lists of
// common words are only asked about what another list brought up.
type merge struct {
	*bm25
	cursors []listing // by rising bound
	bounds  []float64 // what the cursors up to and with i score together at most
	parts   []float64 // by term: what the document at hand scores
}

// listing is a posting list without what was read of it.
type listing struct {
	rest []posting
	term int
	// bound is what no posting of the list scores more than.
	bound float64
}

// last is the posting the listing stands at; 0, which is none, at the end.
func (c *listing) last() posting {
	if len(c.rest) == 0 {
		return 0
	}
	return c.rest[len(c.rest)-1]
}

func newMerge(b *bm25, lists []postingList) *merge {
	m := &merge{bm25: b, parts: make([]float64, len(lists))}
	for term, l := range lists {
		if len(l.postings) > 0 {
			m.cursors = append(m.cursors, listing{l.postings, term, b.score(term, l.most, l.shortest) * slack})
		}
	}
	slices.SortFunc(m.cursors, func(a, b listing) int { return cmp.Compare(a.bound, b.bound) })
	sum := 0.0
	for _, c := range m.cursors {
		sum += c.bound
		m.bounds = append(m.bounds, sum*slack)
	}
	return m
}

// into offers every document that may be among the best.
func (m *merge) into(best *top) {
	if len(m.cursors) == 1 {
		m.single(best)
		return
	}
	floor, passive := best.floor(), 0
	for {
		for passive < len(m.cursors) && m.bounds[passive] < floor {
			passive++
		}
		row := m.next(passive)
		if row == 0 {
			return
		}
		if score, ok := m.document(row, passive, floor); ok && best.offer(candidate{score, row}) {
			floor = best.floor()
		}
	}
}

// single is into for one list, where there is nothing to merge.
func (m *merge) single(best *top) {
	c, floor := m.cursors[0], best.floor()
	if c.bound < floor {
		return
	}
	for _, p := range slices.Backward(c.rest) {
		if score := m.score(c.term, p.count(), p.length()); score >= floor && best.offer(candidate{score, p.row()}) {
			floor = best.floor()
		}
	}
}

// next returns the newest row that an active listing stands at, 0 at the end.
func (m *merge) next(passive int) int64 {
	var newest posting
	for i := passive; i < len(m.cursors); i++ {
		newest = max(newest, m.cursors[i].last())
	}
	return newest.row()
}

// document scores a row and moves the active cursors past it; ok is false as
// soon as it can no longer reach the floor. The parts are added in the order of
// the terms, so that equal documents score the same to the last bit.
func (m *merge) document(row int64, passive int, floor float64) (score float64, ok bool) {
	clear(m.parts)
	sum := 0.0
	for i := passive; i < len(m.cursors); i++ {
		if c := &m.cursors[i]; c.last().row() == row {
			sum += m.count(c)
			c.rest = c.rest[:len(c.rest)-1]
		}
	}
	for i := passive - 1; i >= 0; i-- {
		if (sum+m.bounds[i])*slack < floor {
			return 0, false
		}
		c := &m.cursors[i]
		if c.rest = upTo(c.rest, row); c.last().row() == row {
			sum += m.count(c)
		}
	}
	if sum*slack < floor {
		return 0, false
	}
	for _, part := range m.parts {
		score += part
	}
	return score, true
}

// count notes and returns what the posting at the listing scores.
func (m *merge) count(c *listing) float64 {
	p := c.last()
	part := m.score(c.term, p.count(), p.length())
	m.parts[c.term] = part
	return part
}

// upTo cuts off what stands after a row, found in steps that double.
func upTo(list []posting, row int64) []posting {
	to, step := len(list), 1
	for to >= step && list[to-step].row() > row {
		to, step = to-step, 2*step
	}
	from := max(0, to-step)
	return list[:from+sort.Search(to-from, func(i int) bool { return list[from+i].row() > row })]
}
