package memory

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"palimpsest/pkg/events"
)

// planner folds deltas over a working view of one fact scope and collects the
// rows that changed since the last effect was cut.
type planner struct {
	in         PlanInput
	candidates map[string]events.Candidate
	held       map[string]events.Hold // the buffer as it is now, by id
	buffered   map[string]events.Hold // and as it was before the batch
	revision   uint64                 // of the scope, as of the last effect cut

	// The working view: newest versions, the links that they had when they were
	// closed, and entities.
	facts    map[string]events.Fact
	links    map[string][]string
	entities map[string]events.Entity

	own      map[string]uint64 // revisions that the same command led to before
	conflict string            // why a command changes nothing
	settled  []settledDelta

	rows
}

// rows is what the effect under construction changes.
type rows struct {
	applied         []events.Applied
	changedFacts    map[string]bool
	versions        map[Address]events.Fact
	changedEntities map[string]bool
	edges           map[string]events.Edge
	holds           []events.Hold
	released        []string
}

// settledDelta is a delta's result, and whose outcome it belongs to.
type settledDelta struct {
	delta  events.Delta
	result events.Result
}

func newPlanner(in PlanInput) *planner {
	p := &planner{
		in:         in,
		candidates: make(map[string]events.Candidate, len(in.Batch.Candidates)),
		held:       make(map[string]events.Hold, len(in.Held)),
		revision:   in.State.Revision,
		facts:      make(map[string]events.Fact, len(in.Facts)),
		links:      map[string][]string{},
		entities:   make(map[string]events.Entity, len(in.Entities)),
		own:        map[string]uint64{},
	}
	for _, c := range in.Batch.Candidates {
		p.candidates[c.ID] = c
	}
	for _, h := range in.Held {
		p.held[h.ID] = h
	}
	p.buffered = maps.Clone(p.held)
	for _, f := range in.Facts {
		p.facts[f.ID] = f
	}
	earlier := slices.Clone(in.Earlier)
	slices.SortFunc(earlier, func(a, b events.Fact) int { return cmp.Compare(a.Revision, b.Revision) })
	for _, f := range earlier {
		if len(f.EntityIDs) > 0 {
			p.links[f.ID] = f.EntityIDs
		}
	}
	for _, e := range in.Entities {
		p.entities[e.ID] = e
	}
	p.reset()
	return p
}

// candidate is the one that a delta settles: of the batch, or of the held buffer.
func (p *planner) candidate(d events.Delta) (events.Candidate, bool) {
	id := d.Provenance().CandidateID
	if c, ok := p.candidates[id]; ok {
		return c, true
	}
	h, ok := p.buffered[id]
	return h.Candidate, ok
}

// clone copies what apply changes; the values in the maps are never changed in
// place.
func (p *planner) clone() *planner {
	c := *p
	c.held = maps.Clone(p.held)
	c.facts = maps.Clone(p.facts)
	c.links = maps.Clone(p.links)
	c.entities = maps.Clone(p.entities)
	c.settled = slices.Clip(p.settled)
	c.reset()
	return &c
}

func (p *planner) reset() {
	p.rows = rows{
		changedFacts:    map[string]bool{},
		versions:        map[Address]events.Fact{},
		changedEntities: map[string]bool{},
		edges:           map[string]events.Edge{},
	}
}

// conflicting checks the revisions that a command names, and turns the deltas
// of a conflicting one into NOOPs.
func (p *planner) conflicting(deltas events.Deltas) events.Deltas {
	cmd := p.in.Batch.Command
	if cmd == nil {
		return p.sparing(deltas)
	}
	var why []string
	for _, id := range slices.Sorted(maps.Keys(cmd.IfMatch)) {
		want := cmd.IfMatch[id]
		if own, ok := p.own[id]; ok {
			want = own
		}
		switch f, known := p.facts[id]; {
		case !known:
			why = append(why, fmt.Sprintf("fact %s is unknown", id))
		case f.Revision != want:
			why = append(why, fmt.Sprintf("fact %s has revision %d, not %d", id, f.Revision, want))
		}
	}
	if p.in.Conflict != "" {
		why = append(why, p.in.Conflict)
	}
	if len(why) == 0 {
		return deltas
	}
	p.conflict = strings.Join(why, "; ")
	out := make(events.Deltas, len(deltas))
	for i, d := range deltas {
		out[i] = unchanged(d, events.ReasonChangedSince, firstReplaced(d))
	}
	return out
}

// sparing turns the deltas of maintenance on spared facts into NOOPs.
func (p *planner) sparing(deltas events.Deltas) events.Deltas {
	if len(p.in.Spared) == 0 {
		return deltas
	}
	out := slices.Clone(deltas)
	for i, d := range out {
		if about := firstReplaced(d); p.in.Spared[about] {
			out[i] = unchanged(d, events.ReasonChangedSince, about)
		}
	}
	return out
}

// unchanged is the NOOP in place of a delta that changes nothing.
func unchanged(d events.Delta, why events.Reason, about string) events.Delta {
	prov := d.Provenance()
	prov.Reason = why
	noop, err := events.NewNoop(prov, about)
	if err != nil {
		return d // unreachable: the provenance was that of a valid delta
	}
	return noop
}

func firstReplaced(d events.Delta) string {
	switch d := d.(type) {
	case events.Update:
		return d.Replaces()[0]
	case events.Delete:
		return d.Replaces()[0]
	case events.Noop:
		return d.About()
	}
	return ""
}

// effect cuts what was collected into the effect of the next revision.
func (p *planner) effect() events.EffectCommitted {
	b := p.in.Batch
	p.revision++
	e := events.EffectCommitted{
		Header:      b.Header,
		Revision:    p.revision,
		Rule:        b.Rule,
		As:          b.As,
		Cause:       b.Cause,
		Attempt:     b.Attempt,
		Command:     b.Command,
		Extractor:   b.Extractor,
		CommittedAt: p.in.At,
		Applied:     p.applied,
		Holds:       p.holds,
		Released:    p.released,
	}
	e.Incarnation = p.in.State.Incarnation
	if b.Command != nil {
		e.Rule = RuleCommand
	} else {
		r := b.Range
		e.Range = &r
	}
	for _, id := range slices.Sorted(maps.Keys(p.changedFacts)) {
		e.Facts = append(e.Facts, p.facts[id])
	}
	for _, f := range p.versions {
		e.Versions = append(e.Versions, f)
	}
	slices.SortFunc(e.Versions, func(a, b events.Fact) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Revision, b.Revision))
	})
	for _, id := range slices.Sorted(maps.Keys(p.changedEntities)) {
		e.Entities = append(e.Entities, p.entities[id])
	}
	for _, id := range slices.Sorted(maps.Keys(p.edges)) {
		e.Edges = append(e.Edges, p.edges[id])
	}
	return e
}
