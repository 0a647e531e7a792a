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
	if err := checkLimit(q.Limit); err != nil {
		return nil, err
	}
	if err := sel.Validate(); err != nil {
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
	filter := ""
	for {
		q := of(kindHold).atMost("due", micros(at))
		rows, err := s.page(ctx, q, filter, []any{"@due", "ASC", "@okey", "ASC", "@oid", "ASC"}, pageSize,
			"@b", "@p", "@u", "@a", "@x", "@due", "@okey", "@oid")
		if err != nil {
			return err
		}
		list, err := s.dueHolds(ctx, rows)
		if err != nil {
			return err
		}
		for _, h := range list {
			if !yield(h) {
				return nil
			}
		}
		if len(rows) < pageSize {
			return nil
		}
		f := rows[len(rows)-1]
		filter = behindThree("due", "okey", "oid", f)
	}
}

func (s *Store) dueHolds(ctx context.Context, rows []found) ([]store.DueHold, error) {
	var list []store.DueHold
	var facts []scope.Scope
	for _, row := range rows {
		h, err := decodeBody[events.Hold](row.view("b"))
		if err != nil {
			return nil, err
		}
		fact, err := owner(row)
		if err != nil {
			return nil, err
		}
		facts = append(facts, fact)
		list = append(list, store.DueHold{Scope: fact, ID: h.ID, Due: fromMicros(store.CeilMicros(*h.Due))})
	}
	commands := make([][]any, len(facts))
	for i, fact := range facts {
		commands[i] = []any{"HGET", s.place(fact).state(), "inc"}
	}
	replies, err := s.pipe(ctx, commands)
	for i, r := range replies {
		list[i].Incarnation = fields{"inc": text(r)}.uint("inc")
	}
	return list, err
}

// behindThree is a filter for the rows after r in the order of a number and two
// fields in our own encoding.
func behindThree(n, first, second string, r record) string {
	return fmt.Sprintf("@%[1]s>%[2]s || (@%[1]s==%[2]s && (@%[3]s>'%[4]s' || (@%[3]s=='%[4]s' && @%[5]s>'%[6]s')))",
		n, r.get(n), first, r.get(first), second, r.get(second))
}
