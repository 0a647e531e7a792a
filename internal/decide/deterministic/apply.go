package deterministic

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"palimpsest/internal/decide"
	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// What the batch decides is built here, and becomes part of the view: later
// candidates see it as they would see it after the commit.

func (v *view) add(p events.Provenance, f events.Fact, c events.Candidate) error {
	p.ID = v.nextID()
	delta, err := events.NewAdd(p, events.FactPayload{Fact: &f})
	if err != nil {
		return err
	}
	v.emit(delta, c)
	v.set(f)
	return nil
}

// update gives ids[0] a new version that says what f says, and closes the rest.
func (v *view) update(p events.Provenance, f events.Fact, ids []string, c events.Candidate) error {
	p.ID = v.nextID()
	old := v.newest(ids[0])
	f.ID, f.Revision, f.CreatedAt = old.ID, old.Revision+1, old.CreatedAt
	f.SourceEpisodeIDs = union(old.SourceEpisodeIDs, f.SourceEpisodeIDs)
	if v.known.RequestID == "" {
		f.Metadata = merged(old.Metadata, f.Metadata)
	}
	f.SupersededBy = ""
	delta, err := events.NewUpdate(p, events.FactPayload{Fact: &f}, ids)
	if err != nil {
		return err
	}
	v.emit(delta, c)
	v.succeed(old, f)
	for _, id := range ids[1:] {
		v.close(v.newest(id), f.ValidFrom, memory.AddressOf(f).String())
	}
	return nil
}

func (v *view) remove(p events.Provenance, ids []string, c events.Candidate) error {
	p.ID = v.nextID()
	delta, err := events.NewDelete(p, ids)
	if err != nil {
		return err
	}
	v.emit(delta, c)
	for _, id := range ids {
		v.close(v.newest(id), decide.Since(c), "")
	}
	return nil
}

func (v *view) noop(p events.Provenance, about string, c events.Candidate) error {
	p.ID = v.nextID()
	delta, err := events.NewNoop(p, about)
	if err != nil {
		return err
	}
	v.emit(delta, c)
	if about != "" && p.Reason == events.ReasonDuplicate {
		f := v.newest(about)
		f.SourceEpisodeIDs = union(f.SourceEpisodeIDs, c.SourceEpisodeIDs)
		f.SessionIDs = union(f.SessionIDs, c.SessionIDs)
		v.set(f)
	}
	return nil
}

func (v *view) nextID() string {
	return events.HashID(v.known.Cause, strconv.Itoa(len(v.out.Deltas)))
}

func (v *view) emit(d events.Delta, c events.Candidate) {
	v.out.Deltas = append(v.out.Deltas, d)
	switch d.Kind() {
	case events.DeltaAdd, events.DeltaUpdate:
		if len(c.Entities) > 0 {
			v.out.Mentions[d.Provenance().ID] = c.Entities
		}
	}
}

// close ends a fact at t, superseded by a version where there is one.
func (v *view) close(known events.Fact, t time.Time, by string) {
	next := known
	next.Revision++
	next.UpdatedAt = v.known.At
	next.ValidUntil, next.SupersededBy = ending(known, t), by
	v.succeed(known, next)
}

// succeed puts a version in place of the known one, which held until then.
func (v *view) succeed(known, next events.Fact) {
	known.ValidUntil, known.SupersededBy = ending(known, next.ValidFrom), memory.AddressOf(next).String()
	v.set(known)
	v.set(next)
}

// ending is when a version that is closed at t ceases to hold: never before it
// began, nor later than it was to end anyway.
func ending(f events.Fact, t time.Time) *time.Time {
	if t.Before(f.ValidFrom) {
		t = f.ValidFrom
	}
	if f.ValidUntil != nil && f.ValidUntil.Before(t) {
		return f.ValidUntil
	}
	return &t
}

// merged is metadata with the later episode's winning.
func merged(old, newer map[string]any) map[string]any {
	if len(old) == 0 {
		return newer
	}
	out := maps.Clone(old)
	maps.Copy(out, newer)
	return out
}

// union is all ids without repetitions, in order of appearance; nil for none.
func union(lists ...[]string) []string {
	var out []string
	var seen map[string]bool // of out, once that is long
	known := func(id string) bool {
		if seen == nil {
			return slices.Contains(out, id)
		}
		return seen[id]
	}
	for _, list := range lists {
		for _, id := range list {
			if known(id) {
				continue
			}
			if out = append(out, id); len(out) == longUnion {
				seen = make(map[string]bool, 2*longUnion)
				for _, id := range out {
					seen[id] = true
				}
			} else if seen != nil {
				seen[id] = true
			}
		}
	}
	return out
}

// longUnion is from how many ids on a map finds one sooner than a comparison
// with each: a fact that was said a thousand times has as many sources.
const longUnion = 32
