package retrieval

import (
	"context"
	"slices"

	"palimpsest/internal/lex"
)

// Candidate is a possible answer before it is ranked.
type Candidate struct {
	// Episodes are the ids of the episode, or of those that a fact comes from.
	Episodes []string `json:"episodes"`
	// Values are its features, in the order of [FeatureNames].
	Values []float64 `json:"values"`
}

// FeatureNames names the features of a candidate.
func FeatureNames() []string { return featureNames[:] }

// FeatureWeights are the weights of the features.
func FeatureWeights() []float64 { return weights[:] }

// Candidates returns all that a search would rank, with its features: what weights
// are fitted to. The time that a question names takes no part.
func (e *Engine) Candidates(ctx context.Context, q Query) ([]Candidate, error) {
	q.Text = lex.Plain(q.Text)
	legs := e.ask(ctx, q)
	for _, l := range legs {
		if l.err != nil {
			return nil, l.err
		}
	}
	p, err := e.measured(ctx, q, legs)
	if err != nil {
		return nil, err
	}
	list := make([]Candidate, 0, len(p.all))
	for _, c := range p.all {
		one := Candidate{Values: slices.Clone(c.values[:])}
		if c.doc != nil {
			one.Episodes = []string{c.doc.id}
		} else if one.Episodes = c.hit.Fact.SourceEpisodeIDs; c.from != nil {
			continue // which ranks with it
		}
		list = append(list, one)
	}
	return list, nil
}
