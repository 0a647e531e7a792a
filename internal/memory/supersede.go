package memory

import (
	"slices"
	"time"

	"palimpsest/pkg/events"
)

// apply folds one delta into the view and collects the rows it changes.
func (p *planner) apply(d events.Delta) {
	prov := d.Provenance()
	switch d := d.(type) {
	case events.Add:
		p.add(d, d.Payload())
	case events.Update:
		p.update(d, d.Payload(), d.Replaces())
	case events.Delete:
		p.delete(d)
	case events.Noop:
		p.repeat(d)
	}
	if _, waits := p.held[prov.CandidateID]; waits && !isHold(d) && p.conflict == "" {
		delete(p.held, prov.CandidateID)
		p.released = append(p.released, prov.CandidateID)
	}
}

func isHold(d events.Delta) bool {
	add, ok := d.(events.Add)
	return ok && add.Payload().Hold != nil
}

func (p *planner) add(d events.Delta, payload events.FactPayload) {
	switch {
	case payload.Fact != nil:
		p.addFact(d, *payload.Fact)
	case payload.Entity != nil:
		e := *payload.Entity
		if e.ID == "" {
			e.ID = EntityID(p.in.Batch.Scope, e.CanonicalName, e.Type)
		}
		p.putEntity(e)
		p.record(d, events.Applied{Delta: d}, events.Result{Event: events.ChangeAdd})
	case payload.Edge != nil:
		e := *payload.Edge
		if e.ID == "" {
			e.ID = edgeID(p.in.Batch.Scope, e.Type, e.SourceID, e.TargetID, e.Predicate)
		}
		p.edges[e.ID] = e
		p.record(d, events.Applied{Delta: d}, events.Result{Event: events.ChangeAdd})
	case payload.Hold != nil:
		p.hold(d, *payload.Hold)
	}
}

// hold puts a candidate into the held buffer. One that is held again stays in
// the account that it is held in, and one that was counted otherwise is in none.
func (p *planner) hold(d events.Delta, h events.Hold) {
	switch known, again := p.held[h.ID]; {
	case again:
		h.Rule = known.Rule
	case counted(p.in.Batch):
		h.Rule = ""
	default:
		h.Rule = p.in.Batch.Rule
	}
	p.holds = append(p.holds, h)
	p.held[h.ID] = h
	p.record(d, events.Applied{Delta: d, FactID: h.FactID}, events.Result{Event: events.ChangeNone, FactID: h.FactID})
}

// addFact makes a fact known. One whose id is known came of the same cause: it
// repeats that fact and changes nothing but its sources.
func (p *planner) addFact(d events.Delta, f events.Fact) {
	if _, known := p.facts[f.ID]; known {
		if noop, ok := unchanged(d, events.ReasonDuplicate, f.ID).(events.Noop); ok {
			p.repeat(noop)
		}
		return
	}
	f.Revision = 1
	f.Supersedes, f.SupersededBy = nil, ""
	f = p.complete(d, f)
	p.link(d, &f, nil)
	p.putFact(f)
	p.relate(nil, f)
	p.record(d, events.Applied{Delta: d, FactID: f.ID, After: AddressOf(f).String()},
		events.Result{Event: events.ChangeAdd, FactID: f.ID, Revision: f.Revision, Memory: f.Text})
}

// complete fills what follows from the rest of a fact.
func (p *planner) complete(d events.Delta, f events.Fact) events.Fact {
	if f.Hash == "" {
		f.Hash = HashText(f.Text)
	}
	at := d.Provenance().PromotionTS
	for _, t := range []*time.Time{&f.EventTime, &f.CreatedAt, &f.UpdatedAt} {
		if t.IsZero() {
			*t = at
		}
	}
	if f.ValidFrom.IsZero() {
		f.ValidFrom = f.EventTime
	}
	return f
}

// update gives the first replaced fact a new version and closes the others.
func (p *planner) update(d events.Update, payload events.FactPayload, replaces []string) {
	switch {
	case payload.Entity != nil:
		p.describe(d, *payload.Entity)
		return
	case payload.Fact == nil:
		p.add(d, payload) // an edge is replaced whole
		return
	}
	known, ok := p.facts[replaces[0]]
	if !ok {
		p.repeatUnknown(d)
		return
	}
	next := p.complete(d, *payload.Fact)
	next.ID, next.Revision, next.CreatedAt = known.ID, known.Revision+1, known.CreatedAt
	next.SessionIDs = slices.Clone(next.SessionIDs)
	if !undoes(d) {
		next.SourceEpisodeIDs = union(known.SourceEpisodeIDs, next.SourceEpisodeIDs)
		next.SupersededBy = ""
	}
	next.Supersedes = []string{AddressOf(known).String()}
	var others []events.Fact
	for _, id := range sortedSet(slices.Clone(replaces[1:])) {
		if other, ok := p.facts[id]; ok && id != known.ID {
			others = append(others, other)
			next.Supersedes = append(next.Supersedes, AddressOf(other).String())
		}
	}
	p.link(d, &next, &known)
	p.succeed(d, known, next)
	p.relate(&known, next)
	p.record(d, events.Applied{Delta: d, FactID: next.ID, Before: AddressOf(known).String(), After: AddressOf(next).String()},
		events.Result{Event: events.ChangeUpdate, FactID: next.ID, Revision: next.Revision, Memory: next.Text, OldMemory: known.Text})
	for _, other := range others {
		p.edgeBetween(d, next, other)
		p.closeFact(d, other, next.ValidFrom, AddressOf(next).String())
	}
}

func (p *planner) delete(d events.Delete) {
	ids := sortedSet(slices.Clone(d.Replaces()))
	closed := 0
	for _, id := range ids {
		f, ok := p.facts[id]
		switch {
		case !ok:
			continue
		case d.Provenance().Reason == events.ReasonArchived:
			if f.ArchivedAt == nil {
				p.archive(d, f)
				closed++
			}
		case f.ValidUntil == nil || p.ends(d, f).Before(*f.ValidUntil):
			p.closeFact(d, f, p.ends(d, f), "")
			closed++
		}
	}
	if closed == 0 {
		p.repeatUnknown(d)
	}
}

// undoes reports whether a delta takes an earlier one back: the version that it
// brings is complete.
func undoes(d events.Delta) bool { return d.Provenance().Reason == events.ReasonUndone }

// ends is when what a delta closes stops being true: when its candidate says
// so, else when it was decided. An undone fact was never true.
func (p *planner) ends(d events.Delta, f events.Fact) time.Time {
	c, ok := p.candidate(d)
	switch {
	case undoes(d):
		return f.ValidFrom
	case ok && c.ValidFrom != nil:
		return *c.ValidFrom
	case ok && !c.EventTime.IsZero():
		return c.EventTime
	}
	return d.Provenance().PromotionTS
}

// closeFact ends a fact at until, not before it began, and unlinks it.
func (p *planner) closeFact(d events.Delta, f events.Fact, until time.Time, by string) {
	until = latest(until, f.ValidFrom)
	if f.ValidUntil != nil {
		until = earliest(until, *f.ValidUntil)
	}
	next := f
	next.Revision++
	next.UpdatedAt = d.Provenance().PromotionTS
	if f.OwnEnd == nil && f.ValidUntil != nil && until.Before(*f.ValidUntil) {
		next.OwnEnd = f.ValidUntil // a restore gives it back
	}
	next.ValidUntil = &until
	next.SupersededBy = by
	next.Supersedes = []string{AddressOf(f).String()}
	if len(f.EntityIDs) > 0 {
		p.links[f.ID] = f.EntityIDs
	}
	next.EntityIDs = nil
	p.succeed(d, f, next)
	p.relate(&f, next)
	p.record(d, events.Applied{Delta: d, FactID: f.ID, Before: AddressOf(f).String(), After: AddressOf(next).String()},
		events.Result{Event: events.ChangeDelete, FactID: f.ID, Revision: next.Revision, OldMemory: f.Text})
}

// archive puts a fact aside; it stays valid and readable.
func (p *planner) archive(d events.Delta, f events.Fact) {
	at := d.Provenance().PromotionTS
	next := f
	next.Revision++
	next.UpdatedAt, next.ArchivedAt = at, &at
	next.Supersedes = []string{AddressOf(f).String()}
	p.succeed(d, f, next)
	p.record(d, events.Applied{Delta: d, FactID: f.ID, Before: AddressOf(f).String(), After: AddressOf(next).String()},
		events.Result{Event: events.ChangeDelete, FactID: f.ID, Revision: next.Revision, OldMemory: f.Text})
}

// succeed puts a new version in place of the known one, which becomes history:
// it was true until its successor's time came.
func (p *planner) succeed(d events.Delta, known, next events.Fact) {
	until := latest(next.ValidFrom, known.ValidFrom)
	if known.ValidUntil != nil {
		until = earliest(until, *known.ValidUntil)
	}
	past := known
	past.ValidUntil = &until
	past.SupersededBy = AddressOf(next).String()
	p.versions[AddressOf(past)] = past
	if next.Text != known.Text || next.ValidUntil != nil || next.ArchivedAt != nil {
		p.outdate(known)
	}
	p.putFact(next)
	p.edgeBetween(d, next, known)
}

// repeat records a NOOP and adds its sources and sessions to the fact it is
// about: another after-image, the same revision.
func (p *planner) repeat(d events.Noop) {
	result := events.Result{Event: events.ChangeNone, FactID: d.About()}
	applied := events.Applied{Delta: d, FactID: d.About()}
	if f, ok := p.facts[d.About()]; ok {
		applied.Before = AddressOf(f).String()
		if d.Provenance().Reason == events.ReasonDuplicate {
			f = p.support(d, f)
		}
		result.Revision, result.Memory = f.Revision, f.Text
	}
	if p.in.Batch.Command != nil && p.conflict == "" && d.Provenance().Reason == events.ReasonChangedSince {
		p.conflict = "fact " + d.About() + " is unknown or was closed"
	}
	p.record(d, applied, result)
}

func (p *planner) support(d events.Noop, f events.Fact) events.Fact {
	sources := union(f.SourceEpisodeIDs, d.Provenance().SourceEpisodeIDs)
	c, _ := p.candidate(d)
	sessions := union(f.SessionIDs, c.SessionIDs)
	known := f
	f.SourceEpisodeIDs, f.SessionIDs = sources, sessions
	if f.ValidUntil == nil {
		p.link(d, &f, &known)
	}
	if len(sources) > len(known.SourceEpisodeIDs) || len(sessions) > len(known.SessionIDs) || !slices.Equal(f.EntityIDs, known.EntityIDs) {
		p.putFact(f)
		p.relate(&known, f)
	}
	return f
}

// repeatUnknown records that a delta found nothing to change.
func (p *planner) repeatUnknown(d events.Delta) {
	if noop, ok := unchanged(d, events.ReasonChangedSince, firstReplaced(d)).(events.Noop); ok {
		p.repeat(noop)
	}
}

func (p *planner) putFact(f events.Fact) {
	p.facts[f.ID] = f
	p.changedFacts[f.ID] = true
}

func (p *planner) record(d events.Delta, a events.Applied, r events.Result) {
	r.DeltaID, r.Reason = d.Provenance().ID, d.Provenance().Reason
	p.applied = append(p.applied, a)
	p.settled = append(p.settled, settledDelta{delta: d, result: r})
}

// union appends to known what it lacks of more, in order.
func union(known, more []string) []string {
	out := slices.Clone(known)
	for _, id := range more {
		if id != "" && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

func latest(a, b time.Time) time.Time {
	if a.Compare(b) >= 0 {
		return a
	}
	return b
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
