package redis

import (
	"context"

	"palimpsest/internal/store"
	"palimpsest/pkg/events"
)

// Decayed implements [store.Schedule]. Closed facts of versions before it have a time
// to prune, too: none is due that does not hold for ever.
func (s *Store) Decayed(ctx context.Context, q store.DecayQuery) ([]store.Decayed, error) {
	if err := checkLimit(q.Limit); err != nil {
		return nil, err
	}
	find := of(kindFact)
	if q.Scope != nil {
		find.in(s.place(*q.Scope))
	}
	find.atMost("prune", micros(q.At)).atLeast("vu", never)
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
		f, err := decodeBody[events.Fact](row.view("b"))
		if err != nil {
			return nil, err
		}
		list = append(list, store.Decayed{Scope: fact, ID: f.ID})
		commands[i] = []any{"HGET", s.place(fact).state(), "inc"}
	}
	replies, err := s.pipe(ctx, commands)
	for i, r := range replies {
		list[i].Incarnation = fields{"inc": text(r)}.uint("inc")
	}
	return list, err
}
