package lex

import "math"

// The parameters of BM25 (Robertson and Zaragoza 2009), at their usual values.
const (
	k1 = 1.2
	b1 = 0.75
)

// BM25 counts the texts that a term is weighed by, and their terms with repetitions. The
// score of a text is the sum, over the terms of a query in it, of
//
//	ln(1 + (N - n + ½)/(n + ½)) · f·(k₁ + 1) / (f + k₁·(1 - b + b·length/average))
//
// where n of the N texts hold the term, which occurs f times in the text. The numerator
// without f is Weight, and the denominator without f is Norm.
type BM25 struct{ Texts, Terms float64 }

// Weight is that of a term that some of the texts hold.
func (c BM25) Weight(holding float64) float64 {
	others := max(0, c.Texts-holding) // a count may be older than the other
	return math.Log1p((others+0.5)/(holding+0.5)) * (k1 + 1)
}

// Norm is what the length of a text in terms makes of its score.
func (c BM25) Norm(length float64) float64 {
	average := max(1, c.Terms/max(1, c.Texts))
	return k1 * (1 - b1 + b1*length/average)
}

// Distinct returns the first of equal terms, at most that many, in a list of its own.
func Distinct(terms []string, most int) []string {
	seen := make(map[string]bool, min(len(terms), most))
	out := make([]string, 0, min(len(terms), most))
	for _, t := range terms {
		if len(out) == most {
			break
		}
		if !seen[t] {
			seen[t] = true
			out = append(out, t)
		}
	}
	return out
}
