package eval

import (
	"cmp"
	"math"
	"slices"

	"palimpsest/internal/retrieval"
)

// questionFeature is the same for all candidates of a question. It says nothing about
// their order, and much about whether any is right.
const questionFeature = "known"

// calibrated is how many of the best candidates of a question count.
const calibrated = 25

// calibrateSteps is larger than fitSteps because the sums are not centred.
const calibrateSteps = 3000

// calibrate fits the logistic curve from the sum of the features to the share of right
// answers, and the weight of the question's own feature with it.
func (f *Fitted) calibrate(examples []Example) {
	at := slices.Index(f.Features, questionFeature)
	var points [][3]float64 // sum, the question's feature, 1
	var right []float64
	for _, e := range examples {
		best := slices.Clone(e.Candidates)
		slices.SortStableFunc(best, func(a, b retrieval.Candidate) int {
			return cmp.Compare(dot(b.Values, f.Weights), dot(a.Values, f.Weights))
		})
		for _, c := range best[:min(len(best), calibrated)] {
			points = append(points, [3]float64{dot(c.Values, f.Weights) - c.Values[at]*f.Weights[at], c.Values[at], 1})
			right = append(right, e.right(c))
		}
	}
	w := adam(3, calibrateSteps, func(w, gradient []float64) {
		for i, p := range points {
			off := (1/(1+math.Exp(-dot(p[:], w))) - right[i]) / float64(len(points))
			for k, x := range p {
				gradient[k] += off * x
			}
		}
	})
	f.Weights[at], f.Middle, f.Spread = w[1]/w[0], -w[2]/w[0], 1/w[0]
}
