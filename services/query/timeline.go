package query

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"palimpsest/internal/filter"
	"palimpsest/internal/lex"
	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/scope"
)

type timelineInput struct {
	EntityParams
	Limit int `query:"limit" doc:"Versions at most, the newest; 1 to 1000; 100 unless given."`
}

type timeline struct{ Body api.Timeline }

// timeline tells what was true of an entity, by the time that it began to be.
func (s *Service) timeline(ctx context.Context, in *timelineInput) (*timeline, error) {
	n, err := limit(in.Limit, 100)
	if err != nil {
		return nil, err
	}
	m, err := s.findEntity(ctx, in.EntityParams)
	if err != nil {
		return nil, err
	}
	var all []store.Fact
	for _, e := range m.in {
		of, err := s.versionsAbout(ctx, e)
		if err != nil {
			return nil, err
		}
		all = append(all, of...)
	}
	slices.SortFunc(all, func(a, b store.Fact) int {
		return cmp.Or(a.ValidFrom.Compare(b.ValidFrom), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Revision, b.Revision))
	})
	out := api.Timeline{Entity: viewEntity(m.Entity), Facts: []api.Fact{}}
	for _, f := range all[max(len(all)-n, 0):] {
		out.Facts = append(out.Facts, viewVersion(f.Fact, f.Scope))
	}
	return &timeline{out}, nil
}

// maxTimelineFacts bounds the facts of one fact scope whose versions are read.
const maxTimelineFacts = 200

// versionsAbout are the versions that held for some time of the facts about an entity.
// A closed fact is linked to no entity: its subject, its object or a relation that it
// once made leads to it.
func (s *Service) versionsAbout(ctx context.Context, e scopedEntity) (out []store.Fact, err error) {
	names := append([]string{e.CanonicalName}, e.Aliases...)
	sel := scope.Exactly(e.owner)
	facts, err := s.deps.Store.Facts(ctx, sel, store.FactQuery{
		Limit: maxTimelineFacts, IncludeArchived: true, Filter: &store.Filter{Now: s.deps.Now(), Expr: filter.Or{
			filter.OneOf(filter.Memory, "entity_ids", e.ID),
			filter.OneOf(filter.Memory, "subject", names...), filter.OneOf(filter.Memory, "object", names...),
		}},
	})
	if err != nil {
		return nil, err
	}
	edges, err := s.deps.Store.Edges(ctx, e.owner, []string{e.ID})
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, f := range facts {
		ids = append(ids, f.ID)
	}
	for _, edge := range edges {
		ids = append(ids, edge.Evidence...)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	for _, id := range ids[:min(len(ids), maxTimelineFacts)] {
		versions, err := s.deps.Store.Versions(ctx, sel, id)
		if err != nil && !errors.Is(err, store.ErrNotFound) { // evidence may be a message
			return nil, err
		}
		out = append(out, slices.DeleteFunc(versions, func(v store.Fact) bool {
			return v.ValidUntil != nil && !v.ValidUntil.After(v.ValidFrom) || !about(v, e, names)
		})...)
	}
	return out, nil
}

// about reports whether a version of a fact is about an entity. Where its links were
// taken away, its words decide.
func about(v store.Fact, e scopedEntity, names []string) bool {
	words := lex.NewSet(v.Text)
	return slices.Contains(v.EntityIDs, e.ID) || slices.Contains(names, v.Subject) || slices.Contains(names, v.Object) ||
		slices.ContainsFunc(names, func(name string) bool { return words.Contains(lex.NewSet(name)) })
}
