package deterministic

import (
	"slices"
	"time"

	"palimpsest/pkg/events"
)

// waiting is a candidate that the breaker holds.
type waiting struct {
	events.Hold
	// delta is the index of its delta in the batch, -1 if it was held before.
	delta int
}

// heldForChurn lists what the breaker holds of a scope; what the write policy
// holds waits for something else.
func heldForChurn(held []events.Hold) []waiting {
	var out []waiting
	for _, h := range held {
		if h.Why == string(events.ReasonChurn) {
			out = append(out, waiting{h, -1})
		}
	}
	return out
}

// tripped reports whether the candidate waits, because it has to or because a
// fact that it would change did so too often; then it is held.
func (d *decision) tripped(ids ...string) (bool, error) {
	if d.waits || d.view.known.Breaker.Limit <= 0 {
		return d.waits, nil
	}
	for _, id := range ids {
		f := d.view.newest(id)
		versions, err := d.view.lineage(f)
		if err != nil {
			return false, err
		}
		if due, full := d.view.known.Breaker.Full(versions, d.c.EventTime, d.view.known.At); full {
			d.waits = true
			return true, d.hold(f.ID, due)
		}
	}
	return false, nil
}

// flips is tripped for a candidate that would be an add: of something that was
// known before, and ended.
func (d *decision) flips() (bool, error) {
	// Every change is a later version or comes back after one. A fact that is added for
	// the first time, the usual case, has none, and is not searched.
	if most := 2*d.view.rewritten(d.c) + 1; d.view.known.Breaker.Limit <= 0 || most < d.view.known.Breaker.Limit {
		return false, nil
	}
	alike, err := d.view.answering(tripleOf(d.c), d.c.Cardinality, answers(d.fact)...)
	if err != nil {
		return false, err
	}
	for _, f := range slices.Backward(alike) {
		if d.view.isNewest(f) && sameThing(f, d.fact) {
			return d.tripped(f.ID)
		}
	}
	return false, nil
}

// rewritten counts the later versions of facts with the candidate's subject and
// predicate in the view: the step before has read all that match the candidate.
func (v *view) rewritten(c events.Candidate) (n int) {
	for _, list := range v.versions {
		for i := range list {
			if list[i].Revision > 1 && list[i].Predicate == c.Predicate && list[i].Subject == c.Subject {
				n++
			}
		}
	}
	return n
}

// lineage is every version of what a fact is about: of the fact, and of those
// that said the same, or of one value at a time another, before and after it.
func (v *view) lineage(f events.Fact) ([]events.Fact, error) {
	of := events.Triple{Subject: f.Subject, Predicate: f.Predicate, Object: f.Object}
	alike, err := v.answering(of, f.Cardinality, answers(f)...)
	if err != nil {
		return nil, err
	}
	// Earlier versions may have had other objects. Where all there may be are too
	// few to matter, they are not asked for.
	if f.Cardinality != events.One && uint64(len(alike))+f.Revision > uint64(v.known.Breaker.Limit) {
		err := v.ask("id:"+f.ID, func() ([]events.Fact, error) { return v.known.Lookup.Versions(v.ctx, f.ID) })
		if err != nil {
			return nil, err
		}
	}
	others := slices.DeleteFunc(alike, func(g events.Fact) bool { return g.ID == f.ID || !sameThing(g, f) })
	return sorted(append(others, v.versions[f.ID]...)), nil
}

// answers are the traits of which a fact that answers the same question has
// one.
func answers(f events.Fact) []trait {
	if f.Cardinality == events.One {
		return []trait{keyed(f.Subject, f.Predicate)}
	}
	return []trait{single(f.Subject, f.Predicate), triple(f.Subject, f.Predicate, f.Object)}
}

// sameThing reports whether two facts answer one question.
func sameThing(f, g events.Fact) bool {
	if f.Kind != g.Kind || f.Subject == "" || f.Predicate == "" || f.Subject != g.Subject || f.Predicate != g.Predicate {
		return false
	}
	return f.Cardinality == events.One || g.Cardinality == events.One || plain(f.Object) == plain(g.Object)
}

// hold puts the candidate into the held buffer in place of the one held before on
// the same fact, unless that one was stated later.
func (d *decision) hold(factID string, due time.Time) error {
	h := events.Hold{
		ID: d.c.ID, Candidate: d.c, HeldAt: d.view.known.At, Why: string(events.ReasonChurn),
		FactID: factID, Count: 1, Since: d.view.known.At, Due: &due,
	}
	var replaced []waiting
	for _, w := range d.view.waiting {
		switch {
		case w.ID != h.ID && w.FactID != factID && !concerns(d.c, w.Candidate):
			continue
		case w.ID != h.ID && later(w.Candidate, d.c):
			return d.noop(events.ReasonChurn, factID)
		}
		replaced = append(replaced, w)
		h.Count += w.Count
		if w.Since.Before(h.Since) {
			h.Since = w.Since
		}
		if w.ID == h.ID {
			h.Count--
		}
	}
	for _, w := range replaced {
		if err := d.view.unhold(w, w.ID == h.ID); err != nil {
			return err
		}
	}
	return d.view.hold(d.provenance(events.ReasonChurn), h)
}

// overtake replaces earlier held candidates on the matters that the candidate
// decided, in the deltas from the first on.
func (d *decision) overtake(first int) error {
	if d.waits || d.c.Intent == "noop" {
		return nil
	}
	var touched []string
	for _, delta := range d.view.out.Deltas[first:] {
		switch delta := delta.(type) {
		case events.Update:
			touched = append(touched, delta.Replaces()...)
		case events.Delete:
			touched = append(touched, delta.Replaces()...)
		case events.Noop:
			touched = append(touched, delta.About())
		}
	}
	for _, w := range slices.Clone(d.view.waiting) {
		if w.ID == d.c.ID || later(w.Candidate, d.c) || !slices.Contains(touched, w.FactID) && !concerns(d.c, w.Candidate) {
			continue
		}
		if err := d.view.unhold(w, false); err != nil {
			return err
		}
	}
	return nil
}

// concerns reports whether a candidate speaks of what another states.
func concerns(c, held events.Candidate) bool {
	if held.Subject == "" || held.Predicate == "" {
		return false
	}
	single := c.Cardinality == events.One || held.Cardinality == events.One
	about := append([]events.Triple{{Subject: c.Subject, Predicate: c.Predicate, Object: c.Object}}, c.Retracts...)
	return slices.ContainsFunc(about, func(t events.Triple) bool {
		return t.Subject == held.Subject && t.Predicate == held.Predicate &&
			(single || t.Object == "" || plain(t.Object) == plain(held.Object))
	})
}

// later reports whether a held candidate was said after another: by its time,
// and at the same time by its episode.
func later(held, c events.Candidate) bool {
	if order := held.EventTime.Compare(c.EventTime); order != 0 {
		return order > 0
	}
	return c.Ordinal > 0 && held.Ordinal > c.Ordinal
}

// hold emits the add of a hold.
func (v *view) hold(p events.Provenance, h events.Hold) error {
	p.ID = v.nextID()
	delta, err := events.NewAdd(p, events.FactPayload{Hold: &h})
	if err != nil {
		return err
	}
	v.waiting = append(v.waiting, waiting{h, len(v.out.Deltas)})
	v.out.Deltas = append(v.out.Deltas, delta)
	return nil
}

// unhold removes a held candidate. If it was held before the batch, a NOOP records
// that, unless it is about to be held again.
func (v *view) unhold(w waiting, again bool) error {
	v.waiting = slices.DeleteFunc(v.waiting, func(x waiting) bool { return x.ID == w.ID })
	if w.delta < 0 && again {
		return nil
	}
	if w.delta >= 0 {
		noop, err := events.NewNoop(v.out.Deltas[w.delta].Provenance(), w.FactID)
		v.out.Deltas[w.delta] = noop
		return err
	}
	p := v.provenance(w.Candidate, events.ReasonChurn)
	p.ID = v.nextID()
	if len(p.SourceEpisodeIDs) == 0 && p.RequestID == "" {
		p.RequestID = v.known.Cause // an API caller stated it, and is gone
	}
	noop, err := events.NewNoop(p, w.FactID)
	v.out.Deltas = append(v.out.Deltas, noop)
	return err
}
