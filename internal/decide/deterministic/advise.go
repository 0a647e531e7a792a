package deterministic

import (
	"slices"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// advised takes the advice on a candidate that the steps before left open. The
// times, the breaker and the sources are those of the other steps.
func (d *decision) advised() (bool, error) {
	a, ok := d.view.known.Advice[d.c.ID]
	if !ok {
		return false, nil
	}
	found, err := d.view.byID(a.Facts)
	if err != nil {
		return false, err
	}
	facts := make([]events.Fact, 0, len(a.Facts))
	for _, id := range a.Facts {
		f, ok := found[id]
		if !ok || !d.view.current(f, d.c.EventTime) || d.view.newer(f, d.c) || a.Op != events.DeltaDelete && !d.sameKind(f) {
			return false, nil
		}
		facts = append(facts, f)
	}
	if len(facts) == 0 && a.Op != events.DeltaAdd {
		return false, nil
	}
	d.by = a.By
	switch a.Op {
	case events.DeltaNoop:
		return true, d.noop(events.ReasonDuplicate, facts[0].ID)
	case events.DeltaDelete:
		return !a.Keep, d.end(events.ReasonNegation, a.Facts...)
	case events.DeltaUpdate:
		return true, d.rewrite(facts[0], a.Text)
	case events.DeltaAdd:
	}
	return false, nil
}

// rewrite gives a known fact a new version with the candidate's value. The
// attribute keeps its name, so that later statements find it.
func (d *decision) rewrite(known events.Fact, text string) error {
	version := d.withSources(d.fact, known)
	version.Subject, version.Predicate, version.Cardinality = known.Subject, known.Predicate, known.Cardinality
	if text != "" {
		version.Text, version.Hash = text, memory.HashText(text)
	}
	reason := events.ReasonContradiction
	if refines(known.Object, d.c.Object) {
		reason = events.ReasonRefinement
	}
	version, ids, err := d.exclusive(version, []events.Fact{known})
	if err != nil {
		return err
	}
	if i := slices.Index(ids, known.ID); i > 0 { // it is the one that survives
		ids[0], ids[i] = ids[i], ids[0]
	}
	return d.update(reason, version, ids...)
}
