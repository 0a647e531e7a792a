package memory

import (
	"time"

	"palimpsest/pkg/events"
)

// DescribeMentions is how often an entity is mentioned before it gets a summary.
const DescribeMentions = 3

// DescribeAt is from when on an entity is due for a summary: its last mention, in whole
// microseconds. ok is false for one that has a summary, for one that is mentioned too
// seldom, and for the user, whose facts are a profile already.
func DescribeAt(e events.Entity) (at time.Time, ok bool) {
	if e.Summary != "" || e.MentionCount < DescribeMentions || e.CanonicalName == SubjectUser {
		return time.Time{}, false
	}
	return e.LastUpdated.Truncate(time.Microsecond), true
}

// UpkeepClass is the class of the ticks of one step of a maintenance rule: only
// [events.StepEnrich] may ask a model.
func UpkeepClass(r Rule, step string) events.Class {
	if step == events.StepEnrich {
		return r.Class
	}
	return ""
}

// outgrown reports whether an entity has twice as many mentions as when it last
// outgrew its summary.
func outgrown(mentions uint64) bool {
	for at := uint64(2 * DescribeMentions); at <= mentions; at *= 2 {
		if at == mentions {
			return true
		}
	}
	return false
}

// describe gives an entity a summary, and a type where it has none. All else of it
// stays: it may have been mentioned since.
func (p *planner) describe(d events.Update, e events.Entity) {
	known, ok := p.entities[d.Replaces()[0]]
	if !ok {
		p.repeatUnknown(d)
		return
	}
	known.Summary = e.Summary
	if known.Type == "" {
		known.Type = e.Type
	}
	p.putEntity(known)
	p.record(d, events.Applied{Delta: d}, events.Result{Event: events.ChangeUpdate})
}

// outdate takes away the summaries of the entities of a fact that says something else
// now, or holds no longer: it may be in them.
func (p *planner) outdate(f events.Fact) {
	for _, id := range f.EntityIDs {
		if e, ok := p.entities[id]; ok && e.Summary != "" {
			e.Summary = ""
			p.putEntity(e)
		}
	}
}

// NeededEntities returns the ids of the entities whose summaries a batch may outdate:
// those of the facts that it changes.
func NeededEntities(b events.DeltasDecided, facts []events.Fact) []string {
	changed := map[string]bool{}
	for _, d := range b.Deltas {
		var ids []string
		switch d := d.(type) {
		case events.Update:
			ids = d.Replaces()
		case events.Delete:
			ids = d.Replaces()
		}
		for _, id := range ids {
			changed[id] = true
		}
	}
	var out []string
	for _, f := range facts {
		if changed[f.ID] {
			out = append(out, f.EntityIDs...)
		}
	}
	return sortedSet(out)
}
