package query

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"palimpsest/internal/filter"
	"palimpsest/internal/graph"
	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func (s *Service) graphRoutes(a huma.API) {
	op := func(id, path, summary string) huma.Operation {
		return huma.Operation{OperationID: id, Method: http.MethodGet, Path: path, Summary: summary, Tags: []string{"entities"}}
	}
	register(s, a, op("list-entities", "/v1/entities", "List people, places and things that facts mention"), s.listEntities)
	register(s, a, op("entity", "/v1/entities/{name}", "Describe one of them"), s.entity)
	register(s, a, op("entity-relations", "/v1/entities/{name}/relations", "Follow its relations, nearest first"), s.relations)
	register(s, a, op("entity-timeline", "/v1/entities/{name}/timeline", "Tell what was true of it, oldest first"), s.timeline)
	register(s, a, op("stats", "/v1/stats", "Count facts, entities and relations"), s.stats)
}

// scopedEntity is an entity in its fact scope.
type scopedEntity struct {
	events.Entity
	owner scope.Scope
}

// entitiesWithin reads the entities of those names, all of them for nil, of each fact
// scope within sel.
func (s *Service) entitiesWithin(ctx context.Context, sel scope.Selector, names []string) (list []scopedEntity, err error) {
	owners, err := s.ownersWithin(ctx, sel)
	if err != nil {
		return nil, err
	}
	for _, owner := range owners {
		entities, err := s.deps.Store.Entities(ctx, owner, names)
		if err != nil {
			return nil, err
		}
		for _, e := range entities {
			list = append(list, scopedEntity{e, owner})
		}
	}
	return list, nil
}

// ownersWithin are the fact scopes within sel.
func (s *Service) ownersWithin(ctx context.Context, sel scope.Selector) (owners []scope.Scope, err error) {
	if err := s.eachOwner(ctx, sel, func(owner scope.Scope) { owners = append(owners, owner) }); err != nil {
		return nil, err
	}
	if len(owners) > maxLimit {
		return nil, invalid("user", "entities are read of at most %d users and agents at once, of which this names %d", maxLimit, len(owners))
	}
	return owners, nil
}

// entityPlace orders entities, and is the place of a page.
type entityPlace struct{ Name, Type string }

func placeOf(e events.Entity) entityPlace {
	return entityPlace{memory.EntityKey(e.CanonicalName), string(e.Type)}
}

func (p entityPlace) compare(o entityPlace) int {
	return cmp.Or(cmp.Compare(p.Name, o.Name), cmp.Compare(p.Type, o.Type))
}

// merged are entities of one name and type in several fact scopes.
type merged struct {
	events.Entity
	in []scopedEntity
}

// merge joins the entities of one name and type, in the order of their places.
func merge(list []scopedEntity) (out []merged) {
	slices.SortStableFunc(list, func(a, b scopedEntity) int { return placeOf(a.Entity).compare(placeOf(b.Entity)) })
	for _, e := range list {
		if n := len(out); n == 0 || placeOf(out[n-1].Entity) != placeOf(e.Entity) {
			out = append(out, merged{Entity: e.Entity, in: []scopedEntity{e}})
			continue
		}
		m := &out[len(out)-1]
		m.in = append(m.in, e)
		m.MentionCount += e.MentionCount
		m.Summary = cmp.Or(m.Summary, e.Summary)
		m.Aliases = slices.Clone(m.Aliases)
		for _, alias := range e.Aliases {
			if !slices.Contains(m.Aliases, alias) {
				m.Aliases = append(m.Aliases, alias)
			}
		}
		if e.FirstSeen.Before(m.FirstSeen) {
			m.FirstSeen = e.FirstSeen
		}
		if e.LastUpdated.After(m.LastUpdated) {
			m.LastUpdated = e.LastUpdated
		}
	}
	return out
}

type listEntitiesInput struct {
	SelectorParams
	Type   string `query:"type" doc:"Only entities of this type."`
	Limit  int    `query:"limit" doc:"1 to 1000; 100 unless given."`
	Cursor string `query:"cursor"`
}

type entityPage struct{ Body api.EntityPage }

func (s *Service) listEntities(ctx context.Context, in *listEntitiesInput) (*entityPage, error) {
	sel, err := s.factSelector(in.SelectorParams)
	if err != nil {
		return nil, err
	}
	n, err := limit(in.Limit, 100)
	if err != nil {
		return nil, err
	}
	after, err := open[entityPlace]("cursor", in.Cursor)
	if err != nil {
		return nil, err
	}
	list, err := s.entitiesWithin(ctx, sel, nil)
	if err != nil {
		return nil, err
	}
	all := slices.DeleteFunc(merge(list), func(m merged) bool {
		return in.Type != "" && string(m.Type) != in.Type || after != nil && placeOf(m.Entity).compare(*after) <= 0
	})
	out := api.EntityPage{Entities: []api.Entity{}}
	for i, m := range all {
		if i == n {
			out.Next = seal(placeOf(all[n-1].Entity))
			break
		}
		out.Entities = append(out.Entities, viewEntity(m.Entity))
	}
	return &entityPage{out}, nil
}

func viewEntity(e events.Entity) api.Entity {
	return api.Entity{
		ID: e.ID, Name: e.CanonicalName, Type: string(e.Type), Aliases: e.Aliases, Summary: e.Summary, MentionCount: e.MentionCount,
		FirstSeen: e.FirstSeen, LastSeen: e.LastUpdated,
	}
}

// EntityParams name an entity.
type EntityParams struct {
	SelectorParams
	Name string `path:"name" doc:"Its name or an alias. The user of a fact scope is called user."`
	Type string `query:"type" doc:"Its type, where several entities have the name; the one that is mentioned most unless given."`
}

// findEntity returns the entity that is meant.
func (s *Service) findEntity(ctx context.Context, in EntityParams) (merged, error) {
	sel, err := s.factSelector(in.SelectorParams)
	if err != nil {
		return merged{}, err
	}
	list, err := s.entitiesWithin(ctx, sel, []string{in.Name})
	if err != nil {
		return merged{}, err
	}
	all := slices.DeleteFunc(merge(list), func(m merged) bool { return in.Type != "" && string(m.Type) != in.Type })
	if len(all) == 0 {
		return merged{}, api.NewProblem(http.StatusNotFound, api.CodeNotFound, "name", "no entity has that name here")
	}
	return slices.MaxFunc(all, func(a, b merged) int { return cmp.Compare(a.MentionCount, b.MentionCount) }), nil
}

// Bounds of the answer about one entity.
const (
	entityFacts     = 20
	entityRelations = 50
)

type entityInfo struct{ Body api.EntityInfo }

func (s *Service) entity(ctx context.Context, in *EntityParams) (*entityInfo, error) {
	m, err := s.findEntity(ctx, *in)
	if err != nil {
		return nil, err
	}
	now := s.deps.Now()
	out := api.EntityInfo{Entity: viewEntity(m.Entity), Facts: []api.Fact{}}
	var texts []string
	for _, e := range m.in {
		facts, err := s.factsAbout(ctx, e, now)
		if err != nil {
			return nil, err
		}
		for _, f := range facts[:min(len(facts), entityFacts-len(out.Facts))] {
			out.Facts, texts = append(out.Facts, viewFact(f, now)), append(texts, f.Text)
		}
	}
	out.Description = graph.Describe(m.Entity, texts)
	out.Relations, err = s.walk(ctx, m, now, graph.Limits{Depth: 1, FanOut: entityRelations, Edges: entityRelations})
	return &entityInfo{out}, err
}

// factsAbout are the valid facts that mention an entity, or are about the user.
func (s *Service) factsAbout(ctx context.Context, e scopedEntity, now time.Time) ([]store.Fact, error) {
	about := filter.OneOf(filter.Memory, "entity_ids", e.ID)
	if e.CanonicalName == memory.SubjectUser {
		about = filter.Or{about, filter.OneOf(filter.Memory, "subject", memory.SubjectUser)}
	}
	return s.deps.Store.Facts(ctx, scope.Exactly(e.owner), store.FactQuery{
		Limit: entityFacts, ValidAt: now, Filter: &store.Filter{Expr: about, Now: now},
	})
}

type relationsInput struct {
	EntityParams
	Depth int `query:"depth" minimum:"0" maximum:"6" doc:"Relations from the entity at most, 1 to 6; 1 unless given."`
	Limit int `query:"limit" doc:"1 to 1000; 100 unless given."`
}

type relationList struct{ Body api.Relations }

// maxFanOut bounds the relations of one entity on a walk.
const maxFanOut = 100

func (s *Service) relations(ctx context.Context, in *relationsInput) (*relationList, error) {
	n, err := limit(in.Limit, 100)
	if err != nil {
		return nil, err
	}
	m, err := s.findEntity(ctx, in.EntityParams)
	if err != nil {
		return nil, err
	}
	list, err := s.walk(ctx, m, s.deps.Now(), graph.Limits{Depth: max(in.Depth, 1), FanOut: maxFanOut, Edges: n})
	return &relationList{api.Relations{Relations: list}}, err
}

// walk follows relations in each fact scope of an entity.
func (s *Service) walk(ctx context.Context, m merged, now time.Time, l graph.Limits) ([]api.Relation, error) {
	out := []api.Relation{}
	for _, e := range m.in {
		steps, err := graph.Walk(ctx, s.deps.Store, e.owner, []string{e.ID}, now, l)
		if err != nil {
			return nil, err
		}
		if len(steps) == 0 {
			continue
		}
		all, err := s.deps.Store.Entities(ctx, e.owner, nil)
		if err != nil {
			return nil, err
		}
		names := map[string]string{}
		for _, other := range all {
			names[other.ID] = other.CanonicalName
		}
		for _, step := range steps {
			out = append(out, api.Relation{
				Source: names[step.SourceID], Predicate: step.Predicate, Target: names[step.TargetID], Type: string(step.Type), Depth: step.Depth,
				Confidence: step.Confidence, ValidFrom: step.ValidFrom, ValidUntil: step.ValidUntil, Evidence: step.Evidence,
			})
		}
	}
	slices.SortStableFunc(out, func(a, b api.Relation) int { return cmp.Compare(a.Depth, b.Depth) })
	return out[:min(len(out), l.Edges)], nil
}
