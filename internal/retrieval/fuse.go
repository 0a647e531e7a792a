package retrieval

import (
	"cmp"
	"slices"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
)

// fuse ranks by weighted reciprocal rank: score(x) = Σ wᵢ / (k + rankᵢ(x)),
// divided by the best score reachable, Σ wᵢ / (k + 1), over the channels that
// answered. Ties fall to facts before episodes, then to the more salient fact or
// the newer episode, then to the id, so that an answer is stable.
func fuse(k float64, t ties, legs []leg, limit int) []Hit {
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
	slices.SortFunc(ranked, t.compare)
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
	// partial tells of a fact that its turn answers better.
	partial bool
}

// ties decides between hits of one score.
type ties struct {
	salience memory.Salience
	// now is the instant of all scores. Zero takes the later access of each two facts,
	// which gives the order of version 1 at any instant, and then neither score
	// underflows for its age alone.
	now time.Time
}

// compare orders by score, and ties as [fuse] says.
func (t ties) compare(a, b *fused) int {
	if c := cmp.Compare(b.score, a.score); c != 0 {
		return c
	}
	return cmp.Or(
		cmp.Compare(a.rank(), b.rank()),
		t.compareSalience(a, b),
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

func (f *fused) rank() int {
	switch {
	case f.hit.Fact == nil:
		return 1
	case f.partial:
		return 2
	}
	return 0
}

func (t ties) compareSalience(a, b *fused) int {
	switch one, other := a.hit, b.hit; {
	case one.Fact != nil && other.Fact != nil:
		now := t.now
		if now.IsZero() {
			now = one.Fact.LastAccessed
			if other.Fact.LastAccessed.After(now) {
				now = other.Fact.LastAccessed
			}
		}
		of := func(f *store.Fact, score float64) float64 {
			return t.salience.Score(memory.Moment{
				LastAccess: f.LastAccessed, Now: now, Accesses: f.AccessCount, Relevance: score, Importance: f.Confidence, Text: f.Text,
			})
		}
		return cmp.Compare(of(other.Fact, b.score), of(one.Fact, a.score))
	case one.Episode != nil && other.Episode != nil:
		return other.Episode.Timestamp.Compare(one.Episode.Timestamp)
	}
	return 0
}
