package rulepack

import (
	"slices"

	"palimpsest/pkg/events"
)

// fold moves the end of a replaced value into the candidate that replaces it: "I've
// left Fenwick, I'm with Tarn now" is one candidate that retracts.
func (r *reading) fold() {
	out := r.drafts[:0]
	gone := make(map[int]bool)
	for i := range r.drafts {
		d := &r.drafts[i]
		ends := events.Triple{Subject: d.Subject, Predicate: d.Predicate, Object: d.Object}
		lone := r.lone[ends]
		switch {
		case lone:
			ends = d.Retracts[0]
		case !d.Negated || d.Cardinality != events.One:
			continue
		}
		for j := range r.drafts {
			n := &r.drafts[j]
			if !n.Negated && n.Cardinality == events.One && n.Subject == ends.Subject && n.Predicate == ends.Predicate {
				n.Retracts, n.Transient = append(n.Retracts, ends), false
				gone[i] = true
				break
			}
		}
	}
	for i, d := range r.drafts {
		if !gone[i] && !r.mourned(d) && !r.unnamed(d) {
			out = append(out, d)
		}
	}
	r.drafts = out
}

// endings returns triples without repetitions, the last of them where there are more than
// a candidate may have. What a change moves comes last.
func endings(ts []events.Triple) []events.Triple {
	var out []events.Triple
	for _, t := range slices.Backward(ts) {
		if len(out) < events.MaxRetracts && !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	slices.Reverse(out)
	return out
}
