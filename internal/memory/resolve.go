package memory

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// Resolve finds the entity that a name means: by canonical name, then by alias,
// both by [EntityKey]; of several, one of the same type before others, then the
// lowest id.
func Resolve(known []events.Entity, name string, kind events.EntityType) (events.Entity, bool) {
	key := EntityKey(name)
	if key == "" {
		return events.Entity{}, false
	}
	best, bestRank := events.Entity{}, 0
	for _, e := range known {
		rank := matchRank(e, key, kind)
		if rank > bestRank || rank == bestRank && rank > 0 && e.ID < best.ID {
			best, bestRank = e, rank
		}
	}
	return best, bestRank > 0
}

// matchRank is 0 where the entity is not meant; canonical beats alias, then
// the same type beats another.
func matchRank(e events.Entity, key string, kind events.EntityType) int {
	rank := 0
	switch {
	case EntityKey(e.CanonicalName) == key:
		rank = 3
	case slices.ContainsFunc(e.Aliases, func(a string) bool { return EntityKey(a) == key }):
		rank = 1
	default:
		return 0
	}
	if e.Type == kind {
		rank++
	}
	return rank
}

// mention resolves the mentions of a delta, creates what is not known, counts
// each entity once, merges aliases, and returns the ids in order of mention.
func (p *planner) mention(d events.Delta, f events.Fact) []string {
	var ids []string
	for _, m := range p.in.Batch.Mentions[d.Provenance().ID] {
		if EntityKey(m.Name) == "" {
			continue
		}
		e, known := Resolve(slices.Collect(maps.Values(p.entities)), m.Name, m.Type)
		if !known {
			e = events.Entity{
				ID:            EntityID(p.in.Batch.Scope, m.Name, m.Type),
				CanonicalName: m.Name,
				Type:          m.Type,
				FirstSeen:     f.EventTime,
				LastUpdated:   f.EventTime,
			}
		}
		e.Aliases = mergeAliases(e, m)
		if !slices.Contains(ids, e.ID) {
			ids = append(ids, e.ID)
			e.MentionCount++
			e.FirstSeen = earliest(e.FirstSeen, f.EventTime)
			e.LastUpdated = latest(e.LastUpdated, f.EventTime)
			if outgrown(e.MentionCount) {
				e.Summary = ""
			}
		}
		p.putEntity(e)
	}
	return ids
}

// mergeAliases adds the names of a mention that the entity does not go by yet.
func mergeAliases(e events.Entity, m events.Mention) []string {
	out := slices.Clone(e.Aliases)
	for _, name := range append([]string{m.Name}, m.Aliases...) {
		key := EntityKey(name)
		known := key == "" || key == EntityKey(e.CanonicalName) ||
			slices.ContainsFunc(out, func(a string) bool { return EntityKey(a) == key })
		if !known {
			out = append(out, name)
		}
	}
	return out
}

func (p *planner) putEntity(e events.Entity) {
	p.entities[e.ID] = e
	p.changedEntities[e.ID] = true
}

// link gives a fact its entities: those its delta mentions; where it mentions
// none, those the fact had, or had when it was closed. A closed fact has none.
//
// A version that an undo brings back has the entities that it had.
func (p *planner) link(d events.Delta, f, known *events.Fact) {
	if undoes(d) {
		return
	}
	p.meetUser(d, *f)
	ids := p.mention(d, *f)
	if known != nil {
		had := known.EntityIDs
		if len(had) == 0 {
			had = p.links[f.ID]
		}
		switch {
		case len(ids) == 0:
			ids = had
		case f.Text == known.Text:
			ids = union(had, ids)
		}
	}
	if f.ValidUntil != nil && !f.ValidUntil.After(f.ValidFrom) {
		ids = nil
	}
	f.EntityIDs = ids
}

// relate brings the relation edges that rest on a fact in step with it: those
// of the version before are closed, its own are open as long as it is valid. A
// relation edge is a function of its fact, which is its only evidence, so that
// closing the fact closes it and restoring the fact opens it again.
func (p *planner) relate(known *events.Fact, f events.Fact) {
	if known != nil {
		for _, e := range p.relations(*known) {
			until := latest(f.ValidFrom, e.ValidFrom)
			if f.ValidUntil != nil && f.Text == known.Text {
				until = latest(*f.ValidUntil, e.ValidFrom)
			}
			e.ValidUntil = &until
			p.edges[e.ID] = e
		}
	}
	for _, e := range p.relations(f) {
		p.edges[e.ID] = e
	}
}

// relations derives the edges of a fact: from its subject to each of its entities
// that its object names.
func (p *planner) relations(f events.Fact) (edges []events.Edge) {
	if f.Predicate == "" || len(f.EntityIDs) == 0 {
		return nil
	}
	ends := make([]events.Entity, 0, len(f.EntityIDs))
	for _, id := range f.EntityIDs {
		if e, ok := p.entities[id]; ok {
			ends = append(ends, e)
		}
	}
	slices.SortFunc(ends, func(a, b events.Entity) int { return cmp.Compare(a.ID, b.ID) })
	from, ok := Resolve(ends, f.Subject, "")
	if f.Subject == SubjectUser {
		from, ok = p.entities[p.userID()]
	}
	if !ok {
		return nil
	}
	names := namesIn(f.Object)
	for _, to := range ends {
		named := slices.ContainsFunc(append([]string{to.CanonicalName}, to.Aliases...), func(name string) bool {
			return slices.Contains(names, EntityKey(name))
		})
		if !named || to.ID == from.ID {
			continue
		}
		edges = append(edges, events.Edge{
			ID:         edgeID(p.in.Batch.Scope, events.EdgeRelation, from.ID, to.ID, f.Predicate, f.ID),
			SourceID:   from.ID,
			TargetID:   to.ID,
			Type:       events.EdgeRelation,
			Predicate:  f.Predicate,
			Weight:     1,
			Confidence: f.Confidence,
			Evidence:   []string{f.ID},
			ValidFrom:  f.ValidFrom,
			ValidUntil: f.ValidUntil,
			CreatedAt:  f.CreatedAt,
		})
	}
	return edges
}

// The names that an object may hold: runs of so many words, among the first so many.
const (
	maxNameWords   = 3
	maxObjectWords = 12
)

// namesIn are the names that the object of a fact may hold, itself included.
func namesIn(object string) []string {
	key := EntityKey(object)
	names, words := []string{key}, strings.Fields(key)
	words = words[:min(len(words), maxObjectWords)]
	for i := range words {
		for n := 1; n <= maxNameWords && i+n <= len(words); n++ {
			names = append(names, strings.Join(words[i:i+n], " "))
		}
	}
	return names
}

// SubjectUser is the subject of facts about the user of a fact scope, and the name of
// the user's entity there.
const SubjectUser = "user"

// naming are the predicates whose object is a name of the user.
var naming = []string{"name", "preferred_name"}

func (p *planner) userID() string {
	return EntityID(p.in.Batch.Scope, SubjectUser, events.EntityPerson)
}

// meetUser gives the user an entity with the first fact that relates the user to
// another one or tells a name, which becomes an alias.
func (p *planner) meetUser(d events.Delta, f events.Fact) {
	if f.Subject != SubjectUser || len(p.in.Batch.Mentions[d.Provenance().ID]) == 0 {
		return
	}
	e, known := p.entities[p.userID()]
	if !known {
		e = events.Entity{ID: p.userID(), CanonicalName: SubjectUser, Type: events.EntityPerson, FirstSeen: f.EventTime, LastUpdated: f.EventTime}
	}
	e.FirstSeen = earliest(e.FirstSeen, f.EventTime)
	e.LastUpdated = latest(e.LastUpdated, f.EventTime)
	if slices.Contains(naming, f.Predicate) && f.Object != "" {
		e.Aliases = mergeAliases(e, events.Mention{Name: f.Object}) // by which the mention finds it
	} else {
		e.MentionCount++
	}
	p.putEntity(e)
}

// edgeBetween writes the supersedes edge from a version to one it replaced.
// Such edges are history: they hold whatever becomes of the fact.
func (p *planner) edgeBetween(d events.Delta, next, past events.Fact) {
	from, to := AddressOf(next).String(), AddressOf(past).String()
	e := events.Edge{
		ID:         edgeID(p.in.Batch.Scope, events.EdgeSupersedes, from, to),
		SourceID:   from,
		TargetID:   to,
		Type:       events.EdgeSupersedes,
		Weight:     1,
		Confidence: 1,
		Evidence:   sortedSet([]string{next.ID, past.ID}),
		ValidFrom:  latest(next.ValidFrom, past.ValidFrom),
		CreatedAt:  d.Provenance().PromotionTS,
	}
	p.edges[e.ID] = e
}

// edgeID is the deterministic id of an edge within its fact scope.
func edgeID(fact scope.Scope, kind events.EdgeType, parts ...string) string {
	return "edg_" + events.HashID(append([]string{fact.Project, fact.Key(), string(kind)}, parts...)...)
}
