package memory

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"palimpsest/pkg/events"
)

// Place is where a delta stands in the effects of a fact scope.
type Place struct {
	Revision uint64
	Index    int
}

// Touch is a delta that changed a fact, or repeated it.
type Touch struct {
	Place
	DeltaID   string
	Kind      events.DeltaKind
	Reason    events.Reason
	RequestID string
	Sources   []string
	At        time.Time
}

// UndoConflict is a fact that later deltas touched: taking the chosen ones back
// takes the later ones back too.
type UndoConflict struct {
	Fact  events.Fact // as it is now
	Later []Touch
}

// Undo finds the steps that take chosen deltas of one fact scope back. It is a
// function of the effects that [Undo.Read] was given, from the first to the newest.
type Undo struct {
	chosen map[Place]bool
	about  map[string]bool
	facts  map[string]*undoneFact
	holds  map[string]*undoneHold
}

// undoneFact is what the effects so far made of a fact.
type undoneFact struct {
	now events.Fact
	// before is the fact in front of the first chosen change; nil where that made it
	// known. touched is false until there was one.
	before  *events.Fact
	touched bool
	later   []Touch // deltas behind the first chosen one that are not chosen
	// gained is what chosen repetitions added: sources, sessions and entities.
	gained struct{ sources, sessions, entities []string }
	kept   map[string]bool // sources of the deltas that are not chosen
}

// undoneHold is what they made of a held candidate.
type undoneHold struct {
	hold     events.Hold
	waits    bool // it is in the buffer
	held     bool // a chosen delta put it there
	released bool // a chosen delta took it out
}

// NewUndo returns an Undo of the deltas at the chosen places. It follows only the
// facts that about names.
func NewUndo(chosen map[Place]bool, about map[string]bool) *Undo {
	return &Undo{chosen: chosen, about: about, facts: map[string]*undoneFact{}, holds: map[string]*undoneHold{}}
}

// Read takes up the next effect of the scope.
func (u *Undo) Read(e events.EffectCommitted) {
	images, newest := map[string]events.Fact{}, map[string]events.Fact{}
	for _, f := range e.Versions {
		images[AddressOf(f).String()] = reopened(f)
	}
	for _, f := range e.Facts {
		images[AddressOf(f).String()], newest[AddressOf(f).String()] = f, f
	}
	for i, a := range e.Applied {
		at := Place{e.Revision, i}
		u.readHold(e, a, u.chosen[at])
		if u.about[a.FactID] {
			u.readFact(a, images, newest, Touch{
				Place: at, DeltaID: a.Delta.Provenance().ID, Kind: a.Delta.Kind(), Reason: a.Delta.Provenance().Reason,
				RequestID: a.Delta.Provenance().RequestID, Sources: a.Delta.Provenance().SourceEpisodeIDs, At: e.CommittedAt,
			})
		}
	}
}

// reopened is a version without what its successor in the same effect wrote on it.
// An end that the version had of its own, not before its successor, is lost.
func reopened(f events.Fact) events.Fact {
	f.SupersededBy, f.ValidUntil = "", nil
	return f
}

func (u *Undo) readFact(a events.Applied, images, newest map[string]events.Fact, t Touch) {
	f := u.facts[a.FactID]
	if f == nil {
		f = &undoneFact{kept: map[string]bool{}}
		u.facts[a.FactID] = f
	}
	was := f.now
	changes, repeats := a.After != "", t.Reason == events.ReasonDuplicate && t.Kind == events.DeltaNoop && a.Before != ""
	if image, ok := images[a.After]; ok {
		f.now = image
	} else if image, ok := newest[a.Before]; ok && repeats {
		f.now = image
	}
	chosen := u.chosen[t.Place]
	switch {
	case chosen && changes && !f.touched:
		f.touched = true
		if a.Before != "" {
			f.before = &was
		}
	case chosen && repeats:
		f.gained.sources = append(f.gained.sources, t.Sources...)
		f.gained.sessions = append(f.gained.sessions, lacking(was.SessionIDs, f.now.SessionIDs)...)
		f.gained.entities = append(f.gained.entities, lacking(was.EntityIDs, f.now.EntityIDs)...)
	case !chosen && (changes || repeats):
		f.gained.sessions, f.gained.entities = nil, nil // they may be those of this one, too
		for _, id := range t.Sources {
			f.kept[id] = f.kept[id] || !closes(a)
		}
		if f.touched {
			f.later = append(f.later, t)
		}
	}
}

// closes reports whether a delta ended its fact: that has none of its sources.
func closes(a events.Applied) bool {
	d, updates := a.Delta.(events.Update)
	return a.Delta.Kind() == events.DeltaDelete || updates && d.Replaces()[0] != a.FactID
}

func (u *Undo) readHold(e events.EffectCommitted, a events.Applied, chosen bool) {
	id := a.Delta.Provenance().CandidateID
	if add, ok := a.Delta.(events.Add); ok && add.Payload().Hold != nil {
		u.holds[add.Payload().Hold.ID] = &undoneHold{hold: *add.Payload().Hold, waits: true, held: chosen}
		return
	}
	if h := u.holds[id]; h != nil && slices.Contains(e.Released, id) {
		h.waits, h.released = false, chosen
	}
}

// Steps returns what takes the chosen deltas back, ordered by id, and the facts that
// it leaves alone because later deltas touched them. A fact that include names is
// taken back nevertheless. A fact that is already as it was needs no step.
func (u *Undo) Steps(include func(factID string) bool) (steps []events.UndoStep, conflicts []UndoConflict) {
	for _, id := range slices.Sorted(maps.Keys(u.facts)) {
		f := u.facts[id]
		back := f.back()
		switch {
		case back == nil && neverHeld(f.now), back != nil && sameFact(*back, f.now):
			continue
		case len(f.later) > 0 && !include(id):
			conflicts = append(conflicts, UndoConflict{Fact: f.now, Later: f.later})
			continue
		}
		steps = append(steps, events.UndoStep{FactID: id, Revision: f.now.Revision, Restore: back})
	}
	for _, id := range slices.Sorted(maps.Keys(u.holds)) {
		switch h := u.holds[id]; {
		case h.held && h.waits:
			steps = append(steps, events.UndoStep{HoldID: id})
		case h.released && !h.held && !h.waits:
			steps = append(steps, events.UndoStep{Hold: &h.hold})
		}
	}
	return steps, conflicts
}

// back is the fact in front of the first chosen change, or, where there was none, as
// it is now, without what chosen repetitions alone gave it; nil where the change made
// it known.
func (f *undoneFact) back() *events.Fact {
	if f.touched && f.before == nil {
		return nil
	}
	out := f.now
	if f.touched {
		out = *f.before
	}
	out.SourceEpisodeIDs = without(out.SourceEpisodeIDs, func(id string) bool {
		return slices.Contains(f.gained.sources, id) && !f.kept[id]
	})
	out.SessionIDs = without(out.SessionIDs, func(id string) bool { return slices.Contains(f.gained.sessions, id) })
	out.EntityIDs = without(out.EntityIDs, func(id string) bool { return slices.Contains(f.gained.entities, id) })
	return &out
}

// without returns ids less those that are gone, nil for none.
func without(ids []string, gone func(string) bool) (rest []string) {
	for _, id := range ids {
		if !gone(id) {
			rest = append(rest, id)
		}
	}
	return rest
}

// lacking returns what more has and known has not.
func lacking(known, more []string) []string {
	return without(more, func(id string) bool { return slices.Contains(known, id) })
}

// neverHeld reports whether a fact ended when it began, as one does that was undone.
func neverHeld(f events.Fact) bool { return f.ValidUntil != nil && !f.ValidUntil.After(f.ValidFrom) }

// sameFact compares what two versions say, whatever their places in the history.
func sameFact(a, b events.Fact) bool {
	canonical := func(f events.Fact) ([]byte, error) {
		f.Revision, f.Supersedes = 0, nil
		return (&exporter{mode: ExportContent}).line("fact", f)
	}
	one, err := canonical(a)
	if err != nil {
		return false
	}
	other, err := canonical(b)
	return err == nil && bytes.Equal(one, other)
}
