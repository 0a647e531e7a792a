package rulepack

import "palimpsest/pkg/events"

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
		if !gone[i] && !r.mourned(d) {
			out = append(out, d)
		}
	}
	r.drafts = out
}
