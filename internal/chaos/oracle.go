package chaos

import (
	"cmp"
	"slices"
)

// Known is a fact that must hold of a user in the end, once.
type Known struct {
	Predicate, Object string
	// Last is the statement that made it so. Of a set, Sources are all the
	// statements of it, and the fact must rest on exactly these; of what changes,
	// they are the statements of any value, some of which it may rest on.
	Last    string
	Sources []string
}

// known returns the facts that a story leaves: of several values the last, and no
// retracted ones.
func (s *story) known() []Known {
	var order []string
	facts := map[string]*Known{}
	for _, e := range s.episodes {
		c := e.claim
		if c.predicate == "" {
			continue
		}
		key := c.predicate
		if !single(c.predicate) {
			key += " " + c.object
		}
		if c.ends {
			delete(facts, key)
			continue
		}
		f := facts[key]
		if f == nil {
			f = &Known{Predicate: c.predicate}
			facts[key] = f
			order = append(order, key)
		}
		f.Object, f.Last = c.object, e.ID
		f.Sources = append(f.Sources, e.ID)
	}
	out := make([]Known, 0, len(order))
	for _, key := range order {
		if f := facts[key]; f != nil {
			out = append(out, *f)
		}
	}
	slices.SortFunc(out, func(a, b Known) int {
		return cmp.Or(cmp.Compare(a.Predicate, b.Predicate), cmp.Compare(a.Object, b.Object))
	})
	return out
}
