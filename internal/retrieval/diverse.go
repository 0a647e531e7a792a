package retrieval

import "slices"

// diverse returns the first limit candidates. With diversity it takes the best of
// the rest, by score and by likeness to those taken, until it has that many.
func (e *Engine) diverse(ranked []*candidate, limit int) []*candidate {
	limit = min(limit, len(ranked))
	weight := e.config.Diversity
	if weight == 0 {
		return ranked[:limit]
	}
	left := slices.Clone(ranked[:min(len(ranked), limit+depth)])
	terms, like := make([][]termID, len(left)), make([]float64, len(left))
	for i, c := range left {
		terms[i] = c.distinct()
	}
	taken := make([]*candidate, 0, limit)
	for len(taken) < limit {
		best := -1
		value := func(i int) float64 { return (1-weight)*left[i].score - weight*like[i] }
		for i := range left {
			if left[i] != nil && (best < 0 || value(i) > value(best)) {
				best = i
			}
		}
		taken = append(taken, left[best])
		for i := range left {
			like[i] = max(like[i], likeness(terms[i], terms[best]))
		}
		left[best] = nil
	}
	return taken
}

// distinct are the terms of a candidate, each once, in an order of their own.
func (c *candidate) distinct() []termID {
	var terms []termID
	if c.doc != nil {
		terms = slices.Clone(c.doc.terms)
	} else {
		terms = termsOf(c.hit.Fact.Text)
	}
	slices.Sort(terms)
	return slices.Compact(terms)
}

// likeness is what two texts have in common of all their terms (Jaccard 1901).
func likeness(a, b []termID) float64 {
	both := 0
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			both, i, j = both+1, i+1, j+1
		case a[i] < b[j]:
			i++
		default:
			j++
		}
	}
	return float64(both) / float64(max(1, len(a)+len(b)-both))
}
