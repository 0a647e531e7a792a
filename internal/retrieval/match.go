package retrieval

import (
	"math"
	"math/bits"
)

// The parameters of BM25 (Robertson and Zaragoza 2009), lower than the usual ones:
// turns are short, and a term that occurs in one again says little.
const (
	scoreK1 = 0.9
	scoreB  = 0.4
)

// match is what a text and a question have in common.
type match struct {
	bm25     float64
	mask     uint64 // bit i: it holds term i of the question
	own      uint64 // the same, without what a predicate stands for
	akin     uint64 // bit i: it holds a synonym of term i
	rarest   float64
	terms    int // of the text
	adjacent int // pairs of neighbouring terms of the question that it holds as such
}

func (q *question) match(terms []termID, average float64) (m match) {
	m.terms = len(terms)
	var filter uint64
	for _, f := range q.forms {
		filter |= 1 << (f.id % 64)
	}
	var room [maxForms]int
	counts := room[:len(q.forms)]
	var pairs uint64
	last := -1
	for _, id := range terms {
		at := -1
		if filter&(1<<(id%64)) != 0 {
			if i := q.index(id); i >= 0 {
				counts[i]++
				at = q.forms[i].of
			}
		}
		if at > 0 && last == at-1 {
			pairs |= 1 << last
		}
		last = at
	}
	norm := scoreK1 * (1 - scoreB + scoreB*float64(len(terms))/max(1, average))
	var best [maxQuestionTerms]float64
	for i, n := range counts {
		if n == 0 {
			continue
		}
		f := &q.forms[i]
		if f.share == 1 {
			m.mask |= 1 << f.of
		} else {
			m.akin |= 1 << f.of
		}
		best[f.of] = max(best[f.of], f.weight*float64(n)*(scoreK1+1)/(float64(n)+norm))
		m.rarest = max(m.rarest, f.weight)
	}
	for _, b := range best[:len(q.terms)] {
		m.bm25 += b
	}
	m.own = m.mask
	m.adjacent = bits.OnesCount64(pairs)
	return m
}

func (q *question) index(id termID) int {
	for i := range q.forms {
		if q.forms[i].id == id {
			return i
		}
	}
	return -1
}

// synonymCover is how much of a term's weight a synonym covers.
const synonymCover = 0.6

// covered is the share of the question's weight that the terms of mask and the
// synonyms of akin hold.
func (q *question) covered(mask, akin uint64) float64 {
	sum := 0.0
	for i, w := range q.weights {
		if mask&(1<<i) != 0 {
			sum += w
		} else if akin&(1<<i) != 0 {
			sum += synonymCover * w
		}
	}
	return min(1, sum/max(q.total, math.SmallestNonzeroFloat32))
}
