package redis

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
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
		filter = behindThree("held", "oid", "okey", fields{
			"held": strconv.FormatInt(micros(c.HeldAt), 10), "oid": ordered(c.ID), "okey": ordered(sel.Project) + " " + c.Key,
		})
	}
	rows, err := s.page(ctx, find, filter, []any{"@held", "ASC", "@oid", "ASC", "@okey", "ASC"}, q.Limit, "@b", "@p", "@u", "@a", "@x")
	if err != nil {
		return nil, err
	}
	var list []store.Hold
	for _, row := range rows {
		h, err := decodeBody[events.Hold](row.view("b"))
		if err != nil {
			return nil, err
		}
		fact, err := owner(row)
		if err != nil {
			return nil, err
		}
		list = append(list, store.Hold{Hold: h, Scope: fact})
	}
	return list, nil
}

// DueHolds implements [store.Schedule].
func (s *Store) DueHolds(ctx context.Context, at time.Time, yield func(store.DueHold) bool) error {
	read := func(entries []string) ([]string, []store.DueHold, error) { return s.listedHolds(ctx, entries) }
	return eachListed(ctx, s, upTo(agendaDue, micros(at)+1), read, yield)
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
		h, err := decodeBody[events.Hold]([]byte(text(replies[2*i])))
		if err != nil {
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

// behindThree is a filter for the rows after r in the order of a number and two
// fields in our own encoding.
func behindThree(n, first, second string, r record) string {
	return fmt.Sprintf("@%[1]s>%[2]s || (@%[1]s==%[2]s && (@%[3]s>'%[4]s' || (@%[3]s=='%[4]s' && @%[5]s>'%[6]s')))",
		n, r.get(n), first, r.get(first), second, r.get(second))
}
