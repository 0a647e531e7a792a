package redis

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// Holds implements [store.FactReader].
func (s *Store) Holds(ctx context.Context, fact scope.Scope) ([]events.Hold, error) {
	if err := fact.Validate(); err != nil {
		return nil, err
	}
	list, err := bodiesBy[events.Hold](ctx, s, fact, startingWith(entry(byKind, "", kindHold+":")))
	slices.SortFunc(list, func(a, b events.Hold) int { return cmp.Or(a.HeldAt.Compare(b.HeldAt), cmp.Compare(a.ID, b.ID)) })
	return list, err
}

// ListHolds implements [store.FactReader].
func (s *Store) ListHolds(ctx context.Context, sel scope.Selector, q store.HoldQuery) ([]store.Hold, error) {
	if err := checkList(sel, q.Limit); err != nil {
		return nil, err
	}
	find := of(kindHold).within(s.layout(), sel)
	if q.ID != "" {
		find.tag("id", token(q.ID))
	}
	if q.FactID != "" {
		find.tag("fact", token(q.FactID))
	}
	filter := ""
	if c := q.Cursor; c != nil {
		find.atLeast("held", micros(c.HeldAt))
		if _, err := scope.ParseKey(sel.Project, c.Key); err != nil && c.Key != "" {
			return nil, fmt.Errorf("redis: cursor: %w", err) // a canonical key holds no quote
		}
		filter = fmt.Sprintf("@held>%[1]d || (@held==%[1]d && (@oid>'%[2]s' || (@oid=='%[2]s' && @okey>'%[3]s')))",
			micros(c.HeldAt), ordered(c.ID), ordered(sel.Project)+" "+c.Key)
	}
	rows, err := s.page(ctx, find, filter, []any{"@held", "ASC", "@oid", "ASC", "@okey", "ASC"}, q.Limit, "@b", "@okey")
	if err != nil {
		return nil, err
	}
	known := owners{}
	return parseAll(rows, func(h *store.Hold, row found) (err error) {
		if h.Scope, err = known.of(row.get("okey")); err != nil {
			return err
		}
		return decodeBody(&h.Hold, row)
	})
}

// DueHolds implements [store.Schedule].
func (s *Store) DueHolds(ctx context.Context, at time.Time, yield func(store.DueHold) bool) error {
	read := func(entries []string) ([]string, []store.DueHold, error) { return s.listedHolds(ctx, entries) }
	return eachListed(ctx, s, upTo(waitQueueDue, micros(at)+1), read, yield)
}

func (s *Store) listedHolds(ctx context.Context, entries []string) (right []string, list []store.DueHold, err error) {
	known, places := owners{}, make([]place, len(entries))
	var commands [][]any
	for i, e := range entries {
		fact, id, err := known.parseListed(e)
		if err != nil {
			return nil, nil, err
		}
		places[i] = s.place(fact)
		commands = append(commands, []any{"HGET", places[i].row(kindHold, id), "b"}, []any{"HGET", places[i].state(), "inc"})
	}
	replies, err := s.pipe(ctx, commands)
	if err != nil {
		return nil, nil, err
	}
	right, list = make([]string, len(entries)), make([]store.DueHold, len(entries))
	for i, p := range places {
		if replies[2*i] == nil {
			continue // released
		}
		var h events.Hold
		if err := decode("hold", []byte(text(replies[2*i])), &h); err != nil {
			return nil, nil, err
		}
		if h.Due == nil {
			continue
		}
		due := store.CeilMicros(*h.Due)
		right[i] = p.due(h.ID, due)
		list[i] = store.DueHold{Scope: p.fact, Incarnation: toUint(text(replies[2*i+1])), ID: h.ID, Due: fromMicros(due)}
	}
	return right, list, nil
}
