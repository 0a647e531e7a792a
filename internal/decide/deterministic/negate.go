package deterministic

import (
	"slices"
	"strings"

	"palimpsest/internal/decide"
	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// negate is step 6 for a candidate that says that its triple no longer holds. What it
// retracts besides ends where no fact has the triple.
func (d *decision) negate() (bool, error) {
	ended, err := d.ending(tripleOf(d.c))
	if err != nil {
		return false, err
	}
	for _, f := range ended {
		if err := d.endNamed(f, d.c.Object); err != nil {
			return false, err
		}
	}
	if len(ended) > 0 {
		return true, nil
	}
	made := len(d.view.out.Deltas)
	if err := d.retract(); err != nil || len(d.view.out.Deltas) > made || d.waits {
		return true, err
	}
	return true, d.noop(events.ReasonNegation, "")
}

// retract is step 6 for what ends with what a candidate states, as far as the
// candidate did not take its place.
func (d *decision) retract() error {
	for _, t := range d.c.Retracts {
		ended, err := d.ending(t)
		if err != nil {
			return err
		}
		for _, f := range ended {
			if d.isMine(f) {
				continue
			}
			if err := d.endNamed(f, t.Object); err != nil {
				return err
			}
		}
	}
	return nil
}

// isMine reports whether a fact says what the candidate says.
func (d *decision) isMine(f events.Fact) bool {
	return f.Hash == d.fact.Hash || sameTriple(f, d.c) || d.single(f) && sameKey(f, d.c) && d.restsOn(f)
}

// retracted lists the facts that the candidate says end with it.
func (d *decision) retracted() ([]events.Fact, error) {
	var all []events.Fact
	for _, t := range d.c.Retracts {
		ended, err := d.ending(t)
		if err != nil {
			return nil, err
		}
		for _, f := range ended {
			if !slices.ContainsFunc(all, func(g events.Fact) bool { return g.ID == f.ID }) {
				all = append(all, f)
			}
		}
	}
	return all, nil
}

// retracts reports whether the candidate says that a part of the fact ends.
func (d *decision) retracts(f events.Fact) bool {
	return slices.ContainsFunc(d.c.Retracts, func(t events.Triple) bool {
		return t.Subject == f.Subject && t.Predicate == f.Predicate && names(f, t.Object)
	})
}

// ending lists the facts that hold, that a triple names, and that were not said
// or brought back after the candidate. A triple without a predicate names those of
// any that a change may move.
func (d *decision) ending(t events.Triple) ([]events.Fact, error) {
	if t.Predicate == "" && t.Object != "" {
		return d.holders(t)
	}
	keyed, err := d.view.byKey(t.Subject, t.Predicate)
	if err != nil {
		return nil, err
	}
	var out []events.Fact
	for _, f := range keyed {
		if t.Object == "" && f.EventTime.Equal(d.c.EventTime) && d.restsOn(f) {
			continue // its value is that of the same words
		}
		if d.view.current(f, d.c.EventTime) && !d.view.outlasts(f, d.c) && names(f, t.Object) {
			out = append(out, f)
		}
	}
	if t.Object == "" && len(out) > 1 && !d.c.Negated && d.c.Cardinality == events.Many && d.c.Predicate == t.Predicate {
		return nil, nil // "I changed my major to chemistry" does not tell which of two subjects ends
	}
	return out, nil
}

// endNamed closes a fact, or takes away the part of it that has ended.
func (d *decision) endNamed(f events.Fact, object string) error {
	if f.Predicate == memory.PredicateWork && strings.Contains(f.Text, f.Object) {
		rest, _ := memory.WithoutWork(memory.ParseWork(f.Object), memory.ParseWork(object))
		if rest != (memory.Work{}) {
			return d.update(events.ReasonNegation, d.reduced(f, rest.String()), f.ID)
		}
	}
	return d.end(events.ReasonNegation, f.ID)
}

// reduced is a version of a fact with less of an object, which rests on the
// candidate's sources as well.
func (d *decision) reduced(f events.Fact, object string) events.Fact {
	version := d.withSources(f, d.fact)
	version.Text = strings.Replace(f.Text, f.Object, object, 1)
	version.Hash = memory.HashText(version.Text)
	version.Object = object
	version.EventTime, version.ValidFrom = d.c.EventTime, decide.Since(d.c)
	if version.ValidFrom.Before(f.ValidFrom) {
		version.ValidFrom = f.ValidFrom
	}
	version.Metadata, version.UpdatedAt = d.fact.Metadata, d.view.known.At
	version.Confirmed = false
	version.EvidenceQuote, version.RuleID = d.c.EvidenceQuote, d.c.RuleID
	return version
}
