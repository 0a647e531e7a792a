package deterministic

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode"

	"palimpsest/internal/lex"
	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// holderLimit is how many facts with words of an old value are looked at.
const holderLimit = 12

// replaced are the old values of a candidate that moves one; none for other candidates.
func replaced(c events.Candidate) []events.Triple {
	if !c.Moves || c.Intent != "" || c.Negated || c.Object == "" {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(c.Retracts), func(t events.Triple) bool {
		return t.Predicate != "" || t.Subject == "" || t.Object == ""
	})
}

// move gives a new value subject and predicate of the fact that holds the old one, and
// ends the other facts that say the same of that. Where no fact holds the old value, or
// one with the candidate's own predicate does, it leaves the candidate to the other
// steps; one without a predicate then changes nothing.
func (d *decision) move() (bool, error) {
	olds := replaced(d.c)
	if len(olds) == 0 {
		return false, nil
	}
	var old events.Triple
	var holding []events.Fact
	for _, old = range olds { // the first that is known
		var err error
		if holding, err = d.holders(old); err != nil {
			return true, err
		}
		if len(holding) > 0 {
			break
		}
	}
	if d.c.Predicate != "" && (len(holding) == 0 || slices.ContainsFunc(holding, func(f events.Fact) bool { return sameKey(f, d.c) })) {
		return false, nil
	}
	for i := len(holding) - 1; i >= 0; i-- {
		known := holding[i]
		if known.Predicate != memory.PredicateWork && misnames(known.Object, old.Object, d.c.Object) {
			continue
		}
		object, ok := movedObject(known, old.Object, valueOf(d.c))
		if !ok {
			continue
		}
		ids := idsOf(known, holding)
		if shape, _ := mostly(d.c.Object); shape != nil {
			ids = ids[:1] // other appointments of that day stay
		}
		d.moved = true
		return true, d.carry(known, old.Object, object, ids)
	}
	if d.c.Predicate != "" {
		return false, nil
	}
	d.moved = true // nothing to retract
	return true, d.noop(events.ReasonNegation, "")
}

// misnames reports whether an old value that was told in small letters is a name in what
// is known, and the new one is none: "Lindt closed, I'm in the bath now".
func misnames(known, old, value string) bool {
	capital := func(s string) bool { return strings.ContainsFunc(s, unicode.IsUpper) }
	from, to := wordOf(known, old)
	return !capital(old) && !capital(value) && capital(known[from:to])
}

// valueOf is the new value of a candidate that moves it: of a job, the part that is
// told.
func valueOf(c events.Candidate) string {
	if c.Predicate != memory.PredicateWork {
		return c.Object
	}
	job := memory.ParseWork(c.Object)
	return cmp.Or(job.Employer, job.Role, job.Field)
}

// carry rewrites a fact with another object in the place of the old value.
func (d *decision) carry(known events.Fact, old, object string, ids []string) error {
	if plain(object) == plain(known.Object) {
		return d.noop(events.ReasonDuplicate, known.ID)
	}
	version := d.withSources(d.fact, known)
	version.Kind, version.Category, version.Sensitivity = known.Kind, known.Category, known.Sensitivity
	version.Subject, version.Predicate, version.Cardinality = known.Subject, known.Predicate, known.Cardinality
	version.DecayRate, version.Object = known.DecayRate, object
	version.Text = movedText(known, old, object, d.c)
	version.Hash = memory.HashText(version.Text)
	version, rivals, err := d.exclusive(version, []events.Fact{known})
	if err != nil {
		return err
	}
	for _, id := range rivals {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return d.update(events.ReasonContradiction, version, ids...)
}

// movedText is the text of a fact with another object.
func movedText(known events.Fact, old, object string, c events.Candidate) string {
	if known.Object != "" && strings.Contains(known.Text, known.Object) {
		return strings.Replace(known.Text, known.Object, object, 1)
	}
	if shape, at := mostly(c.Object); shape != nil {
		if place := shape.FindStringIndex(known.Text); place != nil {
			return known.Text[:place[0]] + c.Object[at[0]:at[1]] + known.Text[place[1]:]
		}
	}
	if from, to := placeOf(known.Text, old); to > from {
		return known.Text[:from] + c.Object + known.Text[to:]
	}
	return c.Text
}

// holders lists the facts that hold and have the object of t, whatever their
// predicates, the newest last. Those whose object is t's hide those whose object has
// its words, which hide those whose text has them.
func (d *decision) holders(t events.Triple) ([]events.Fact, error) {
	wanted := lex.Terms(t.Object)
	if len(wanted) == 0 {
		return nil, nil
	}
	hits, err := d.view.known.Lookup.Similar(d.view.ctx, t.Object+" "+strings.Join(wanted, " "), holderLimit)
	if err != nil {
		return nil, err
	}
	if err := d.view.learn(hits); err != nil {
		return nil, err
	}
	ids := maps.Clone(d.view.changed)
	for _, f := range hits {
		ids[f.ID] = true
	}
	place, _ := mostly(d.c.Object)
	if shape, _ := shapeIn(t.Object); shape != nil {
		place = nil
	}
	var same, within, around, planned, called []events.Fact
	for id := range ids {
		f := d.view.newest(id)
		if f.Subject != t.Subject || !d.open(f) {
			continue
		}
		if !movable(f.Predicate) && f.Predicate != d.c.Predicate {
			if slices.Contains(endedPredicates, f.Predicate) && t.Predicate == "" && hasAll(lex.Terms(f.Object), wanted) {
				planned = append(planned, f)
			}
			continue
		}
		if d.c.Moves && d.c.Predicate == "" && d.c.Cardinality == events.One && f.Cardinality != events.One {
			continue // a correction of an attribute with one value
		}
		if place != nil && t.Predicate == "" && f.Predicate != "upcoming" && !place.MatchString(f.Object) {
			continue // a topic's day or number ends one of its own kind
		}
		switch {
		case plain(f.Object) == plain(t.Object):
			same = append(same, f)
		case hasAll(lex.Terms(f.Object), wanted):
			within = append(within, f)
		case d.c.Moves && hasAll(lex.Terms(f.Text), wanted):
			around = append(around, f)
		case calls(f, wanted):
			called = append(called, f)
		}
	}
	if len(called) > 1 {
		called = nil // "the bike" of two bikes
	}
	for _, group := range [...][]events.Fact{same, within, around, planned, called} {
		if len(group) > 0 {
			return sorted(group), nil
		}
	}
	return nil, nil
}

// calls reports whether a fact tells what the thing of that word is: "The user's car is a
// Golf".
func calls(f events.Fact, wanted []string) bool {
	const beside = 1 // "named"
	if slices.Contains(phrasedPredicates, f.Predicate) {
		return false
	}
	known := append(lex.Terms(f.Object), lex.Terms(f.Subject)...)
	rest := slices.DeleteFunc(lex.Terms(f.Text), func(t string) bool { return slices.Contains(known, t) })
	return hasAll(rest, wanted) && len(rest) <= len(wanted)+beside
}

// open reports whether a fact holds now as well, as a search finds it, rests on other words than the candidate's and
// was not said or brought back after it.
func (d *decision) open(f events.Fact) bool {
	mine := slices.ContainsFunc(d.c.SourceEpisodeIDs, func(id string) bool { return slices.Contains(f.SourceEpisodeIDs, id) })
	ended := f.ValidUntil != nil && !f.ValidUntil.After(d.view.known.At)
	return !d.view.outlasts(f, d.c) && !mine && !ended && d.view.current(f, d.c.EventTime)
}

func hasAll(have, wanted []string) bool {
	return !slices.ContainsFunc(wanted, func(t string) bool { return !slices.Contains(have, t) })
}
