package retrieval

import "math"

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
	rarest   float64
	terms    int // of the text
	adjacent int // pairs of neighbouring terms of the question that it holds as such
}

func (q *question) match(terms []termID, average float64) (m match) {
	m.terms = len(terms)
	var filter uint64
	for _, id := range q.ids {
		filter |= 1 << (id % 64)
	}
	var room [maxQuestionTerms]int
	counts := room[:len(q.ids)]
	var pairs uint64
	last := -1
	for _, id := range terms {
		at := -1
		if filter&(1<<(id%64)) != 0 {
			at = q.index(id)
		}
		if at >= 0 && at < len(counts) {
			counts[at]++
			m.mask |= 1 << at
			if last >= 0 && at == last+1 {
				pairs |= 1 << last
			}
		}
		last = at
	}
	norm := scoreK1 * (1 - scoreB + scoreB*float64(len(terms))/max(1, average))
	for i, n := range counts {
		if pairs&(1<<i) != 0 {
			m.adjacent++
		}
		if n > 0 {
			m.bm25 += q.weights[i] * float64(n) * (scoreK1 + 1) / (float64(n) + norm)
			m.rarest = max(m.rarest, q.weights[i])
		}
	}
	return m
}

func (q *question) index(id termID) int {
	for i, known := range q.ids {
		if known == id {
			return i
		}
	}
	return -1
}

// covered is the share of the question's weight that a mask holds.
func (q *question) covered(mask uint64) float64 {
	sum := 0.0
	for i, w := range q.weights {
		if mask&(1<<i) != 0 {
			sum += w
		}
	}
	return min(1, sum/max(q.total, math.SmallestNonzeroFloat32))
}
