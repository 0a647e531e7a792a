package retrieval

import (
	"cmp"
	"slices"

	"palimpsest/internal/store"
)

// fuse ranks by weighted reciprocal rank: score(x) = Σ wᵢ / (k + rankᵢ(x)),
// divided by the best score reachable, Σ wᵢ / (k + 1), over the channels that
// answered. Ties fall to facts before episodes, then to the newer, then to the
// id, so that an answer is stable.
func fuse(k float64, legs []leg, limit int) []Hit {
	byKey := map[string]*Hit{}
	best := 0.0
	for _, l := range legs {
		if l.err != nil {
			continue
		}
		best += l.weight / (k + 1)
		for i, h := range l.hits {
			hit := byKey[keyOf(h)]
			if hit == nil {
				hit = &Hit{Hit: h, Channels: map[string]Place{}}
				byKey[keyOf(h)] = hit
			}
			hit.Score += l.weight / (k + float64(i+1))
			hit.Channels[l.name] = Place{Rank: i + 1, Score: h.Score}
		}
	}
	out := make([]Hit, 0, len(byKey))
	for _, h := range byKey {
		h.Score = min(1, h.Score/best)
		out = append(out, *h)
	}
	slices.SortFunc(out, func(a, b Hit) int {
		return cmp.Or(
			cmp.Compare(b.Score, a.Score),
			cmp.Compare(rank(a.Hit), rank(b.Hit)),
			compareAge(a.Hit, b.Hit),
			cmp.Compare(keyOf(a.Hit), keyOf(b.Hit)),
		)
	})
	return out[:min(limit, len(out))]
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

func compareAge(a, b store.Hit) int {
	switch {
	case a.Fact != nil && b.Fact != nil:
		return b.Fact.UpdatedAt.Compare(a.Fact.UpdatedAt)
	case a.Episode != nil && b.Episode != nil:
		return b.Episode.Timestamp.Compare(a.Episode.Timestamp)
	}
	return 0
}
