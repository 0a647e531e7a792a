package redisdouble

import (
	"math"
	"slices"
	"sort"
)

// node is a condition.
type node interface {
	matches(d *document) bool
	// bound is at most how many documents match; each calls yield with all of
	// those and maybe others, some more than once, until it returns false.
	bound(ix *index) int
	each(ix *index, yield func(*document) bool)
	// score is BM25STD, of a document that matches.
	score(ix *index, d *document) float64
}

// everything is the condition that always holds.
type everything struct{}

func (everything) matches(*document) bool               { return true }
func (everything) bound(ix *index) int                  { return len(ix.all) }
func (everything) score(ix *index, d *document) float64 { return ix.weigh(d, 1, 1) }
func (everything) each(ix *index, yield func(*document) bool) {
	for _, d := range ix.all {
		if !yield(d) {
			return
		}
	}
}

// negation holds where another condition does not.
type negation struct{ node }

func (n negation) matches(d *document) bool                 { return !n.node.matches(d) }
func (negation) bound(ix *index) int                        { return len(ix.all) }
func (negation) score(*index, *document) float64            { return 0 }
func (negation) each(ix *index, yield func(*document) bool) { everything{}.each(ix, yield) }

// intersection holds where all conditions do.
type intersection []node

func (n intersection) matches(d *document) bool {
	for _, c := range n {
		if !c.matches(d) {
			return false
		}
	}
	return true
}

// few documents are looked at one by one, rather than an ordering made for them.
const few = 1000

// narrowest is the condition with the fewest documents.
func (n intersection) narrowest(ix *index) node {
	best, least := n[0], math.MaxInt
	for _, ranges := range []bool{false, true} {
		for _, c := range n {
			if _, is := c.(within); is != ranges || least <= few {
				continue
			}
			if b := c.bound(ix); b < least {
				best, least = c, b
			}
		}
	}
	return best
}

func (n intersection) bound(ix *index) int { return n.narrowest(ix).bound(ix) }

func (n intersection) each(ix *index, yield func(*document) bool) { n.narrowest(ix).each(ix, yield) }

func (n intersection) score(ix *index, d *document) (sum float64) {
	for _, c := range n {
		sum += c.score(ix, d)
	}
	return sum
}

// optional always holds, and counts where its condition does.
type optional struct{ node }

func (optional) matches(*document) bool                     { return true }
func (optional) bound(ix *index) int                        { return len(ix.all) }
func (optional) each(ix *index, yield func(*document) bool) { everything{}.each(ix, yield) }

func (n optional) score(ix *index, d *document) float64 {
	if !n.node.matches(d) {
		return 0
	}
	return n.node.score(ix, d)
}

// unweighted is a condition that adds nothing to a score.
type unweighted struct{ node }

func (unweighted) score(*index, *document) float64 { return 0 }

// union holds where any condition does.
type union []node

func (n union) matches(d *document) bool {
	return slices.ContainsFunc(n, func(c node) bool { return c.matches(d) })
}

func (n union) bound(ix *index) (sum int) {
	for _, c := range n {
		sum += c.bound(ix)
	}
	return sum
}

func (n union) each(ix *index, yield func(*document) bool) {
	for _, c := range n {
		on := true
		c.each(ix, func(d *document) bool {
			on = yield(d)
			return on
		})
		if !on {
			return
		}
	}
}

func (n union) score(ix *index, d *document) (sum float64) {
	for _, c := range n {
		if c.matches(d) {
			sum += c.score(ix, d)
		}
	}
	return sum
}

// tagged holds where a field has one of the tags.
type tagged struct {
	*field
	tags []string
}

func (n tagged) matches(d *document) bool {
	return slices.ContainsFunc(d.tags[n.column], func(tag string) bool { return slices.Contains(n.tags, tag) })
}

func (n tagged) bound(ix *index) (sum int) {
	for _, tag := range n.tags {
		sum += len(ix.tags[n.column][tag])
	}
	return sum
}

func (n tagged) each(ix *index, yield func(*document) bool) {
	for _, tag := range n.tags {
		for d := range ix.tags[n.column][tag] {
			if !yield(d) {
				return
			}
		}
	}
}

func (n tagged) score(ix *index, d *document) (sum float64) {
	for _, tag := range n.tags {
		if slices.Contains(d.tags[n.column], tag) {
			sum += ix.weigh(d, ix.rarity(len(ix.tags[n.column][tag])), 1)
		}
	}
	return sum
}

// within holds where a number is in a range.
type within struct {
	*field
	low, high    float64
	above, below bool // the end itself is not in the range
}

func (n within) matches(d *document) bool { return n.holds(d.numbers[n.column]) }

// holds is false for NaN, which stands for none.
func (n within) holds(x float64) bool {
	return x >= n.low && x <= n.high && (!n.above || x != n.low) && (!n.below || x != n.high)
}

// part is what of the ordering is in the range.
func (n within) part(ix *index) ordering {
	o := *ix.ordering(n.field)
	from := sort.Search(len(o), func(i int) bool { return o[i].number > n.low || o[i].number == n.low && !n.above })
	to := sort.Search(len(o), func(i int) bool { return o[i].number > n.high || o[i].number == n.high && n.below })
	return o[from:max(from, to)]
}

func (n within) bound(ix *index) int { return len(n.part(ix)) }

func (n within) each(ix *index, yield func(*document) bool) {
	for _, e := range n.part(ix) {
		if !yield(e.document) {
			return
		}
	}
}

func (within) score(*index, *document) float64 { return 0 }

// term holds where a text has a word.
type term struct {
	*field // nil for any
	word   string
}

func (n term) matches(d *document) bool { return n.count(d) > 0 }

func (n term) count(d *document) (sum int) {
	for i, counts := range d.terms {
		if n.field == nil || n.column == i {
			sum += counts[n.word]
		}
	}
	return sum
}

func (n term) bound(ix *index) (sum int) {
	for i, p := range ix.terms {
		if n.field == nil || n.column == i {
			sum += len(p[n.word])
		}
	}
	return sum
}

func (n term) each(ix *index, yield func(*document) bool) {
	for i, p := range ix.terms {
		if n.field != nil && n.column != i {
			continue
		}
		for d := range p[n.word] {
			if !yield(d) {
				return
			}
		}
	}
}

func (n term) score(ix *index, d *document) float64 {
	return ix.weigh(d, ix.rarity(n.bound(ix)), float64(n.count(d)))
}

// The constants of BM25STD, which the real server reckons with in 32 bits, as
// below.
const (
	k1 float32 = 1.2
	b1 float32 = 0.75
)

// weigh is what a word adds to a score that stands count times in a document.
func (ix *index) weigh(d *document, rarity, count float64) float64 {
	average := float64(ix.length) / float64(len(ix.all))
	if average == 0 {
		return 0
	}
	long := float64(1-b1) + float64(b1*float32(d.length))/average
	return rarity * count * float64(k1+1) / (count + float64(k1)*long)
}

// rarity is the inverse document frequency of a word that n documents hold.
func (ix *index) rarity(n int) float64 {
	return math.Log(float64(1 + (float32(len(ix.all)-n)+0.5)/(float32(n)+0.5)))
}
