package redis

import (
	"cmp"
	"context"
	"slices"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// Entities implements [store.FactReader].
func (s *Store) Entities(ctx context.Context, fact scope.Scope, names []string) ([]events.Entity, error) {
	if err := fact.Validate(); err != nil || names != nil && len(names) == 0 {
		return nil, err
	}
	keys := make([]string, len(names))
	for i, name := range names {
		keys[i] = token(memory.EntityKey(name))
	}
	parts := lookups(byName, keys)
	if names == nil {
		parts = []entries{startingWith(entry(byKind, "", kindEntity+":"))}
	}
	list, err := bodiesBy[events.Entity](ctx, s, fact, parts...)
	list = slices.DeleteFunc(list, func(e events.Entity) bool { return names != nil && !named(e, keys) })
	slices.SortFunc(list, func(a, b events.Entity) int { return cmp.Compare(a.ID, b.ID) })
	return list, err
}

// EntitiesByID implements [store.FactReader].
func (s *Store) EntitiesByID(ctx context.Context, fact scope.Scope, ids []string) ([]events.Entity, error) {
	if err := fact.Validate(); err != nil || len(ids) == 0 {
		return nil, err
	}
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	p, keys := s.place(fact), make([]string, len(ids))
	for i, id := range ids {
		keys[i] = p.row(kindEntity, id)
	}
	rows, err := s.rowsAt(ctx, keys, []string{"b"})
	if err != nil {
		return nil, err
	}
	return parseAll(rows, decodeBody[events.Entity])
}

// Edges implements [store.FactReader].
func (s *Store) Edges(ctx context.Context, fact scope.Scope, nodes []string) ([]events.Edge, error) {
	if err := fact.Validate(); err != nil || nodes != nil && len(nodes) == 0 {
		return nil, err
	}
	parts := []entries{startingWith(entry(byKind, "", kindEdge+":"))}
	if nodes != nil {
		keys := make([]string, len(nodes))
		for i, node := range nodes {
			keys[i] = token(node)
		}
		parts = lookups(byNode, keys)
	}
	list, err := bodiesBy[events.Edge](ctx, s, fact, parts...)
	list = slices.DeleteFunc(list, func(e events.Edge) bool { return e.Type == events.EdgeSupersedes })
	slices.SortFunc(list, func(a, b events.Edge) int { return cmp.Compare(a.ID, b.ID) })
	return list, err
}

// named reports whether an entity has one of the names still: an alias that it had
// before stays in the lookup.
func named(e events.Entity, keys []string) bool {
	return slices.ContainsFunc(append([]string{e.CanonicalName}, e.Aliases...), func(name string) bool {
		return slices.Contains(keys, token(memory.EntityKey(name)))
	})
}

// Outcomes implements [store.OutcomeReader].
func (s *Store) Outcomes(ctx context.Context, project, correlationID string) ([]events.Outcome, error) {
	q := of(kindOutcome).tag("p", scope.Encode(project)).tag("corr", token(correlationID))
	rows, err := s.page(ctx, q, "", []any{"@rev", "ASC", "@okey", "ASC", "@ord", "ASC"}, allRows, "@b")
	if err != nil {
		return nil, err
	}
	return parseAll(rows, decodeBody[events.Outcome])
}
