package eval

import (
	"cmp"
	"math"
	"slices"

	"palimpsest/internal/retrieval"
)

// questionFeatures are the same for all candidates of a question. They say nothing about
// their order, and much about whether any is right.
var questionFeatures = []string{"known", "memory"}

// calibrated is how many of the best candidates of a question count.
const calibrated = 25

// calibrateSteps is larger than fitSteps because the sums are not centred.
const calibrateSteps = 3000

// calibrate fits the logistic curve from the sum of the features to the share of right
// answers, and the weights of the question's own features with it.
func (f *Fitted) calibrate(examples []Example) {
	var own []int // the question's features
	for _, name := range questionFeatures {
		own = append(own, slices.Index(f.Features, name))
	}
	var points [][]float64 // sum, the question's features, 1
	var right []float64
	for _, e := range examples {
		best := slices.Clone(e.Candidates)
		slices.SortStableFunc(best, func(a, b retrieval.Candidate) int {
			return cmp.Compare(dot(b.Values, f.Weights), dot(a.Values, f.Weights))
		})
		for _, c := range best[:min(len(best), calibrated)] {
			point := []float64{dot(c.Values, f.Weights)}
			for _, at := range own {
				point[0] -= c.Values[at] * f.Weights[at]
				point = append(point, c.Values[at])
			}
			points, right = append(points, append(point, 1)), append(right, e.right(c))
		}
	}
	w := adam(len(own)+2, calibrateSteps, func(w, gradient []float64) {
		for i, p := range points {
			off := (1/(1+math.Exp(-dot(p, w))) - right[i]) / float64(len(points))
			for k, x := range p {
				gradient[k] += off * x
			}
		}
	})
	for i, at := range own {
		f.Weights[at] = w[i+1] / w[0]
	}
	f.Middle, f.Spread = -w[len(w)-1]/w[0], 1/w[0]
}
