package redis

import (
	"context"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
)

// Decayed implements [store.Schedule]. Closed facts of versions before it have a time
// to prune, too: none is due that does not hold for ever.
func (s *Store) Decayed(ctx context.Context, q store.DecayQuery) ([]store.Decayed, error) {
	return due(ctx, s, q, kindFact, func(find *query) { find.atLeast("vu", never) }, func(f events.Fact) string { return f.ID })
}

// Undescribed implements [store.Schedule]. An entity that was written last by a version
// before it is due from its next mention on.
func (s *Store) Undescribed(ctx context.Context, q store.DecayQuery) ([]store.Decayed, error) {
	return due(ctx, s, q, kindEntity, func(*query) {}, func(e events.Entity) string { return e.ID })
}

// due reads the rows of a kind whose time in the field prune has come, as far as keep
// lets them.
func due[T any](ctx context.Context, s *Store, q store.DecayQuery, kind string, keep func(*query), id func(T) string) ([]store.Decayed, error) {
	if err := store.CheckLimit(q.Limit); err != nil {
		return nil, err
	}
	find := of(kind)
	if q.Scope != nil {
		find.in(s.place(*q.Scope))
	}
	keep(find.atMost("prune", micros(q.At)))
	// FT.SEARCH of a cluster forgets the offset.
	a, err := s.search(ctx, s.aggregateArgs(find, "SORTBY", 4, "@okey", "ASC", "@oid", "ASC", "MAX", q.Offset+q.Limit,
		"LOAD", 2, "@b", "@okey", "LIMIT", q.Offset, q.Limit))
	if err != nil {
		return nil, err
	}
	var list []store.Decayed
	known, commands := owners{}, make([][]any, len(a.rows))
	for i, row := range a.rows {
		fact, err := known.of(row.get("okey"))
		if err != nil {
			return nil, err
		}
		var v T
		if err := decodeBody(&v, row); err != nil {
			return nil, err
		}
		list = append(list, store.Decayed{Scope: fact, ID: id(v)})
		commands[i] = []any{"HGET", s.place(fact).state(), "inc"}
	}
	replies, err := s.pipe(ctx, commands)
	for i, r := range replies {
		list[i].Incarnation = fields{"inc": text(r)}.uint("inc")
	}
	return list, err
}

// describeAt is the field prune of an entity.
func describeAt(e events.Entity) int64 {
	if at, ok := memory.DescribeAt(e); ok {
		return micros(at)
	}
	return never
}
