package retrieval

import (
	"cmp"
	"slices"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
)

// fuse ranks by weighted reciprocal rank: score(x) = Σ wᵢ / (k + rankᵢ(x)),
// divided by the best score reachable, Σ wᵢ / (k + 1), over the channels that
// answered. Ties fall to facts before episodes, then to the more salient fact or
// the newer episode, then to the id, so that an answer is stable.
func fuse(k float64, legs []leg, limit int) []Hit {
	at := map[string]int{}
	var all []fused
	best := 0.0
	for l, leg := range legs {
		if leg.err != nil {
			continue
		}
		best += leg.weight / (k + 1)
		for i, h := range leg.hits {
			key := keyOf(h)
			n, known := at[key]
			if !known {
				n = len(all)
				at[key] = n
				all = append(all, fused{hit: h, key: key, places: make([]Place, len(legs))})
			}
			all[n].score += leg.weight / (k + float64(i+1))
			all[n].places[l] = Place{Rank: i + 1, Score: h.Score}
		}
	}
	ranked := make([]*fused, len(all))
	for i := range all {
		all[i].score = min(1, all[i].score/best)
		ranked[i] = &all[i]
	}
	slices.SortFunc(ranked, compareFused)
	out := make([]Hit, min(limit, len(ranked)))
	for i := range out {
		out[i] = ranked[i].result(legs)
	}
	return out
}

// fused is a hit on its way through fusion, with its place in each leg.
type fused struct {
	hit    store.Hit
	key    string
	score  float64
	places []Place // Rank 0 where the leg did not find it
}

func compareFused(a, b *fused) int {
	if c := cmp.Compare(b.score, a.score); c != 0 {
		return c
	}
	return cmp.Or(
		cmp.Compare(rank(a.hit), rank(b.hit)),
		compareSalience(a.hit, b.hit),
		cmp.Compare(a.key, b.key),
	)
}

func (f *fused) result(legs []leg) Hit {
	hit := Hit{Hit: f.hit, Score: f.score, Channels: map[string]Place{}}
	for l, place := range f.places {
		if place.Rank > 0 {
			hit.Channels[legs[l].name] = place
		}
	}
	return hit
}

func keyOf(h store.Hit) string {
	if h.Fact != nil {
		return "f" + h.Fact.ID
	}
	e := h.Episode
	return "e" + e.Scope.Tokens() + "\x00" + e.Source + "\x00" + e.ID
}

func rank(h store.Hit) int {
	if h.Fact != nil {
		return 0
	}
	return 1
}

func compareSalience(a, b store.Hit) int {
	switch {
	case a.Fact != nil && b.Fact != nil:
		// The order does not depend on now; at the later access neither score underflows
		// for its age alone.
		now := a.Fact.LastAccessed
		if b.Fact.LastAccessed.After(now) {
			now = b.Fact.LastAccessed
		}
		of := func(f *store.Fact) float64 {
			return memory.SalienceV1{}.Score(memory.Moment{LastAccess: f.LastAccessed, Now: now, Accesses: f.AccessCount})
		}
		return cmp.Compare(of(b.Fact), of(a.Fact))
	case a.Episode != nil && b.Episode != nil:
		return b.Episode.Timestamp.Compare(a.Episode.Timestamp)
	}
	return 0
}
