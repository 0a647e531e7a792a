package deterministic

import (
	"slices"
	"strings"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// replace is steps 4 and 5: of values that exclude each other the later one holds; a
// value that refines another is merged with it.
func (d *decision) replace() (bool, error) {
	of := single(d.c.Subject, d.c.Predicate)
	if d.c.Cardinality == events.One {
		of = keyed(d.c.Subject, d.c.Predicate)
	}
	keyed, err := d.view.answering(tripleOf(d.c), d.c.Cardinality, of)
	if err != nil {
		return false, err
	}
	keyed = slices.DeleteFunc(keyed, func(f events.Fact) bool { return !d.sameKind(f) })
	if len(keyed) == 0 {
		return false, nil
	}
	var current, newer []events.Fact
	for _, f := range keyed {
		if d.view.newer(f, d.c) {
			newer = append(newer, f)
		}
		if d.view.current(f, d.c.EventTime) {
			current = append(current, f)
		}
	}
	if len(newer) > 0 {
		return true, d.history(newer, keyed)
	}
	if len(current) == 0 {
		d.fact = d.placed(d.fact, keyed, nil)
		return false, nil
	}
	known := current[len(current)-1]
	if plain(known.Object) != plain(d.c.Object) && (says(known, d.c) || unnamed(d.c, known)) && !d.retracts(known) {
		return true, d.noop(events.ReasonDuplicate, known.ID)
	}
	version, reason := d.successor(known)
	return true, d.update(reason, d.placed(version, keyed, current), idsOf(known, current)...)
}

// idsOf lists the ids of facts without repetitions, the first one's first.
func idsOf(first events.Fact, facts []events.Fact) []string {
	ids := []string{first.ID}
	for _, f := range facts {
		if !slices.Contains(ids, f.ID) {
			ids = append(ids, f.ID)
		}
	}
	return ids
}

// successor is the version that follows a known one, and why.
func (d *decision) successor(known events.Fact) (events.Fact, events.Reason) {
	if d.c.Predicate == memory.PredicateWork {
		return d.workSuccessor(known)
	}
	if refines(known.Object, d.c.Object) || plain(known.Object) == plain(d.c.Object) {
		return d.withSources(d.fact, known), events.ReasonRefinement
	}
	return d.fact, events.ReasonContradiction
}

// workSuccessor merges a statement about work into the known work fact: parts that
// it does not mention stay.
func (d *decision) workSuccessor(known events.Fact) (events.Fact, events.Reason) {
	base := memory.ParseWork(known.Object)
	for _, t := range d.c.Retracts {
		if t.Subject == d.c.Subject && t.Predicate == d.c.Predicate {
			base, _ = memory.WithoutWork(base, memory.ParseWork(t.Object))
		}
	}
	version := d.fact
	version.Object = mergeWork(base.String(), d.c.Object)
	if version.Object != d.c.Object && strings.Contains(d.c.Text, d.c.Object) {
		version.Text = strings.Replace(d.c.Text, d.c.Object, version.Object, 1)
		version.Hash = memory.HashText(version.Text)
		version = d.withSources(version, known)
	}
	old, merged := memory.ParseWork(known.Object), memory.ParseWork(version.Object)
	if kept(old.Role, merged.Role) && kept(old.Employer, merged.Employer) && kept(old.Field, merged.Field) {
		return version, events.ReasonRefinement
	}
	return version, events.ReasonContradiction
}

// kept reports whether a part is still told, in the same or more words.
func kept(old, merged string) bool {
	return old == "" || plain(old) == plain(merged) || refines(old, merged)
}

// history adds what was said to be before a newer statement: closed where the
// first of the newer begins. Where another value is known of that time, the
// older statement stays in its place and this one holds at no instant.
func (d *decision) history(newer, all []events.Fact) error {
	from := d.fact.ValidFrom
	until := newer[0].ValidFrom
	for _, f := range newer {
		if f.ValidFrom.Before(until) {
			until = f.ValidFrom
		}
	}
	for _, f := range all {
		if f.ValidFrom.After(from) && f.ValidFrom.Before(until) {
			until = f.ValidFrom
		}
		if holds(d.view, f, from) {
			until = from
		}
	}
	if d.fact.ValidUntil != nil && d.fact.ValidUntil.Before(until) {
		until = *d.fact.ValidUntil
	}
	d.fact.ValidUntil = notBefore(&until, from)
	if d.view.known.Breaker.Crowded(all, d.c.EventTime) {
		return d.noop(events.ReasonChurn, newer[len(newer)-1].ID)
	}
	return d.view.add(d.provenance(events.ReasonContradiction), d.fact, d.c)
}

// holds reports whether a version held at t.
func holds(v *view, f events.Fact, t time.Time) bool {
	if f.ValidFrom.After(t) {
		return false
	}
	if f.ValidUntil == nil && v.isNewest(f) {
		return f.ArchivedAt == nil
	}
	return t.Before(v.endOf(f))
}

// placed is the version as it begins: when the candidate says, but not while
// another value held than those it replaces.
func (d *decision) placed(version events.Fact, all, replaced []events.Fact) events.Fact {
	for _, f := range all {
		gone := slices.ContainsFunc(replaced, func(r events.Fact) bool {
			return r.ID == f.ID && r.Revision == f.Revision
		})
		if end := d.view.endOf(f); !gone && end.After(f.ValidFrom) && end.After(version.ValidFrom) {
			version.ValidFrom = end
		}
	}
	version.ValidUntil = notBefore(version.ValidUntil, version.ValidFrom)
	return version
}

func notBefore(t *time.Time, from time.Time) *time.Time {
	if t != nil && t.Before(from) {
		return &from
	}
	return t
}
