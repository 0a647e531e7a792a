package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"palimpsest/internal/embed"
	"palimpsest/internal/retrieval"
	"palimpsest/pkg/scope"
)

// Example is a question with what a search would rank for it.
type Example struct {
	Set          string                `json:"set"`
	Conversation string                `json:"conv"`
	Evidence     []string              `json:"evidence"`
	Candidates   []retrieval.Candidate `json:"candidates"`
}

// WriteExamples writes one example a line.
func WriteExamples(path string, examples []Example) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write features: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	out := json.NewEncoder(file)
	for _, e := range examples {
		if err := out.Encode(e); err != nil {
			return fmt.Errorf("write features: %w", err)
		}
	}
	return nil
}

// Examples records the turns of a set and returns its questions with their
// candidates: of a search for episodes, and of one for facts as well.
func Examples(ctx context.Context, set Set, s System) ([]Example, error) {
	if err := s.record(ctx, set.Turns); err != nil {
		return nil, err
	}
	engine, err := retrieval.New(s.Search, s.Store, embed.Only(s.Embedder))
	if err != nil {
		return nil, err
	}
	step, end := s.Part("ask", uint64(len(set.Questions)))
	defer end()
	examples := make([]Example, 0, 2*len(set.Questions))
	for _, q := range set.Questions {
		user := q.Conversation
		for _, facts := range []bool{false, true} {
			candidates, err := engine.Candidates(ctx, retrieval.Query{
				Scope: scope.Selector{Project: scope.DefaultProject, User: &user}, Text: q.Text, Limit: q.limit(), Facts: facts, Episodes: true, ValidAt: time.Now(),
			})
			if err != nil {
				return nil, fmt.Errorf("ask question %s: %w", q.ID, err)
			}
			e := Example{set.Name, q.Conversation, q.Evidence, candidates}
			if facts {
				e.Set += " with facts"
			}
			examples = append(examples, e)
		}
		step(1)
	}
	return examples, nil
}

// Fitted holds weights and how they rank conversations that they were not fitted to.
type Fitted struct {
	Features []string  `json:"features"`
	Weights  []float64 `json:"weights"`
	// HeldOut are the figures of each set; each conversation is ranked by weights
	// that were fitted to all others. Shipped are those of the weights that ship.
	HeldOut map[string]Figures `json:"held_out"`
	Shipped map[string]Figures `json:"shipped"`
	// Middle and Spread are those of the logistic curve from the sum of the features
	// to the share of right answers.
	Middle float64 `json:"middle"`
	Spread float64 `json:"spread"`
}

// Fit fits the weights of the features to examples.
func Fit(examples []Example) Fitted {
	f := Fitted{Features: retrieval.FeatureNames(), HeldOut: map[string]Figures{}, Shipped: map[string]Figures{}}
	add := func(to map[string]Figures, e Example, weights []float64) {
		sum := to[e.Set]
		sum.add(measure(e.Evidence, e.ranked(weights)))
		to[e.Set] = sum
	}
	left := map[string][]float64{}
	for _, e := range examples {
		if left[e.Conversation] == nil {
			left[e.Conversation] = fit(slices.DeleteFunc(slices.Clone(examples), func(o Example) bool { return o.Conversation == e.Conversation }))
		}
		add(f.HeldOut, e, left[e.Conversation])
		add(f.Shipped, e, retrieval.FeatureWeights())
	}
	for set := range f.HeldOut {
		f.HeldOut[set], f.Shipped[set] = f.HeldOut[set].mean(), f.Shipped[set].mean()
	}
	f.Weights = fit(examples)
	f.calibrate(examples)
	return f
}

// ranked lists the episodes by weights, best first.
func (e Example) ranked(weights []float64) []string {
	type scored struct {
		ids   []string
		score float64
	}
	all := make([]scored, len(e.Candidates))
	for i, c := range e.Candidates {
		all[i] = scored{c.Episodes, dot(c.Values, weights)}
	}
	slices.SortStableFunc(all, func(a, b scored) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return 0
	})
	var ids []string
	for _, s := range all {
		ids = append(ids, s.ids...)
	}
	return ids
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// The steps of gradient descent and their size, and the weight of the
// squared weights in the loss, against which the sum over all questions stands.
const (
	fitSteps = 250
	fitRate  = 0.05
	fitDecay = 1.0
)

// fit minimises the listwise loss of Cao et al. 2007: the cross entropy between the
// evidence of a question and the softmax of the scores of its candidates. Each set
// counts by the square root of its questions, so that a small one is heard.
func fit(examples []Example) []float64 {
	sizes, total := map[string]float64{}, 0.0
	for _, e := range examples {
		sizes[e.Set]++
	}
	for _, n := range sizes {
		total += math.Sqrt(n)
	}
	return adam(len(retrieval.FeatureNames()), fitSteps, func(weights, gradient []float64) {
		for i, w := range weights {
			gradient[i] = fitDecay * w / float64(len(examples))
		}
		for _, e := range examples {
			e.descend(weights, gradient, 1/(math.Sqrt(sizes[e.Set])*total))
		}
	})
}

// adam minimises by steps of gradient descent (Kingma and Ba 2015), from 0. Add adds
// the gradient.
func adam(n, steps int, add func(weights, gradient []float64)) []float64 {
	weights, first, second := make([]float64, n), make([]float64, n), make([]float64, n)
	for step := 1; step <= steps; step++ {
		gradient := make([]float64, n)
		add(weights, gradient)
		for i, g := range gradient {
			first[i], second[i] = 0.9*first[i]+0.1*g, 0.999*second[i]+0.001*g*g
			m, v := first[i]/(1-math.Pow(0.9, float64(step))), second[i]/(1-math.Pow(0.999, float64(step)))
			weights[i] -= fitRate * m / (math.Sqrt(v) + 1e-9)
		}
	}
	return weights
}

// descend adds the gradient of the loss of one question.
func (e Example) descend(weights, gradient []float64, scale float64) {
	scores, right, total, most := make([]float64, len(e.Candidates)), 0.0, 0.0, math.Inf(-1)
	for i, c := range e.Candidates {
		scores[i] = dot(c.Values, weights)
		most = max(most, scores[i])
		right += e.right(c)
	}
	if right == 0 {
		return
	}
	for i := range scores {
		scores[i] = math.Exp(scores[i] - most)
		total += scores[i]
	}
	for i, c := range e.Candidates {
		off := scale * (scores[i]/total - e.right(c)/right)
		for f, x := range c.Values {
			gradient[f] += off * x
		}
	}
}

func (e Example) right(c retrieval.Candidate) float64 {
	for _, id := range c.Episodes {
		if slices.Contains(e.Evidence, id) {
			return 1
		}
	}
	return 0
}

// Write prints the figures in per cent, and the weights.
func (f Fitted) Write(out io.Writer) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(t, "set\tweights\tn\tR@5\tR@10\tR@25\tMRR\t")
	for _, set := range slices.Sorted(maps.Keys(f.HeldOut)) {
		for _, of := range []struct {
			name string
			Figures
		}{{"held out", f.HeldOut[set]}, {"shipped", f.Shipped[set]}} {
			_, _ = fmt.Fprintf(t, "%s\t%s\t%d\t%.1f\t%.1f\t%.1f\t%.1f\t\n", set, of.name, of.Questions,
				100*of.Recall5, 100*of.Recall10, 100*of.Recall25, 100*of.MRR)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "score = 1/(1+exp(-(sum-%.2f)/%.2f))\n", f.Middle, f.Spread); err != nil {
		return err
	}
	for i, name := range f.Features {
		if _, err := fmt.Fprintf(out, "%-16s %6.2f\n", name, f.Weights[i]); err != nil {
			return err
		}
	}
	return nil
}
