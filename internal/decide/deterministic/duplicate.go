package deterministic

import (
	"slices"

	"palimpsest/pkg/events"
)

// duplicate is step 2: a candidate that repeats a known fact, or whose words already
// made a former version and are only read again, changes nothing.
func (d *decision) duplicate() (bool, error) {
	same, err := d.view.byHash(d.fact.Hash)
	if err != nil {
		return false, err
	}
	resting, err := d.resting()
	if err != nil {
		return false, err
	}
	for _, f := range same { // a fact that holds gains sources
		if d.sameKind(f) && d.view.current(f, d.c.EventTime) {
			return true, d.noop(events.ReasonDuplicate, f.ID)
		}
	}
	for _, f := range append(same, resting...) {
		if d.readBefore(f) {
			about := ""
			if d.view.isNewest(f) {
				about = f.ID
			}
			return true, d.noop(events.ReasonDuplicate, about)
		}
	}
	return false, nil
}

// resting lists the versions of the candidate's key that have a source of the
// candidate and match it: no other version was made by its words, or shares their
// hash.
func (d *decision) resting() ([]events.Fact, error) {
	if len(d.c.SourceEpisodeIDs) == 0 {
		return nil, nil
	}
	subject, predicate := d.c.Subject, d.c.Predicate
	return d.view.answering(tripleOf(d.c), d.c.Cardinality, sourced(subject, predicate, d.c.SourceEpisodeIDs[0]))
}

// readBefore reports whether the candidate's words made this version, or are
// older than its end.
func (d *decision) readBefore(f events.Fact) bool {
	if !d.sameKind(f) {
		return false
	}
	if d.restsOn(f) {
		return f.Hash == d.fact.Hash || sameTriple(f, d.c) || d.absorbed(f)
	}
	return f.Hash == d.fact.Hash && !d.view.current(f, d.c.EventTime) && d.c.EventTime.Before(d.view.endOf(f))
}

// sameKind: a procedure and an opinion in the same words are two things.
func (d *decision) sameKind(f events.Fact) bool { return f.Kind == d.c.Kind }

// restsOn reports whether every source of the candidate is among the fact's.
func (d *decision) restsOn(f events.Fact) bool {
	if len(d.c.SourceEpisodeIDs) == 0 {
		return false
	}
	for _, id := range d.c.SourceEpisodeIDs {
		if !slices.Contains(f.SourceEpisodeIDs, id) {
			return false
		}
	}
	return true
}

// absorbed reports whether one value holds at a time and the version's object
// says all that the candidate's does: it was merged into it.
func (d *decision) absorbed(f events.Fact) bool {
	return d.single(f) && sameKey(f, d.c) && says(f, d.c)
}

// single reports whether (subject, predicate) has one value at a time.
func (d *decision) single(f events.Fact) bool {
	return d.c.Cardinality == events.One || f.Cardinality == events.One
}
