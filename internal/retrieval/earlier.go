package retrieval

import (
	"cmp"
	"context"
	"math"
	"slices"

	"palimpsest/internal/lex"
	"palimpsest/internal/store"
)

// earlier ranks earlier versions by the words that they share with the question,
// each weighed by how few of them have it, as BM25 does (Robertson and Zaragoza
// 2009). Facts are single sentences, so that how often one has a word and how long
// it is say little.
func earlier(ctx context.Context, q Query) (found, error) {
	facts, err := q.Earlier(ctx)
	if err != nil || len(facts) == 0 {
		return found{}, err
	}
	having := map[string][]int{} // by term of the question
	for _, term := range lex.Terms(q.Text) {
		having[term] = nil
	}
	for i, f := range facts {
		terms := lex.Terms(f.Text)
		slices.Sort(terms)
		for _, term := range slices.Compact(terms) {
			if with, asked := having[term]; asked {
				having[term] = append(with, i)
			}
		}
	}
	scores := make([]float64, len(facts))
	for _, with := range having {
		n := float64(len(with))
		weight := math.Log(1 + (float64(len(facts))-n+0.5)/(n+0.5))
		for _, i := range with {
			scores[i] += weight
		}
	}
	var hits []store.Hit
	for i := range facts {
		if within := (q.After.IsZero() || facts[i].EventTime.After(q.After)) && (q.Before.IsZero() || facts[i].EventTime.Before(q.Before)); within && scores[i] > 0 {
			hits = append(hits, store.Hit{Score: scores[i], Fact: &facts[i]})
		}
	}
	slices.SortStableFunc(hits, func(a, b store.Hit) int { return cmp.Compare(b.Score, a.Score) })
	return found{hits: hits[:min(len(hits), q.Limit+depth)]}, nil
}
