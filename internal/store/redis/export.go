package redis

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// pageSize is how many rows an iteration reads before it yields them.
const pageSize = 256

// statePages calls yield with the scopes whose states q finds, by (project, key), page by
// page, until it returns false.
func (s *Store) statePages(ctx context.Context, q *query, yield func([]scope.Scope) (bool, error)) error {
	for filter := ""; ; {
		rows, err := s.page(ctx, q, filter, []any{"@okey", "ASC"}, pageSize, "@okey")
		if err != nil {
			return err
		}
		facts, err := owners{}.ofAll(rows)
		if err != nil {
			return err
		}
		if more, err := yield(facts); !more || err != nil || len(rows) < pageSize {
			return err
		}
		// The place is of our own encoding, which holds no quote.
		filter = fmt.Sprintf("@okey>'%s'", rows[len(rows)-1].get("okey"))
	}
}

// holding keeps states of scopes that hold anything.
func (q *query) holding() *query { return q.clause("(@last:[1 +inf] | @rev:[1 +inf])") }

// Projects implements [store.Exporter].
func (s *Store) Projects(ctx context.Context) ([]string, error) {
	a, err := s.search(ctx, s.aggregateArgs(of(kindState).holding(), "GROUPBY", 1, "@p", "LIMIT", 0, allRows))
	if err != nil {
		return nil, err
	}
	var list []string
	for _, row := range a.rows {
		project, err := scope.Decode(row.get("p"))
		if err != nil {
			return nil, fmt.Errorf("redis: %w: project: %w", store.ErrDamaged, err)
		}
		list = append(list, project)
	}
	slices.Sort(list)
	return list, nil
}

// Scopes implements [store.Exporter].
func (s *Store) Scopes(ctx context.Context, sel scope.Selector, yield func(scope.Scope) bool) error {
	if err := sel.Validate(); err != nil {
		return err
	}
	return s.statePages(ctx, of(kindState).within(s.layout(), sel).holding(), func(page []scope.Scope) (bool, error) {
		for _, fact := range page {
			if !yield(fact) {
				return false, nil
			}
		}
		return true, nil
	})
}

// eachState calls yield with the rows of all scopes within sel, until it returns an error.
func (s *Store) eachState(ctx context.Context, sel scope.Selector, yield func(scope.Scope, fields) error) error {
	if err := sel.Validate(); err != nil {
		return err
	}
	return s.statePages(ctx, of(kindState).within(s.layout(), sel).holding(), func(page []scope.Scope) (bool, error) {
		list, err := s.states(ctx, page)
		for i := 0; i < len(list) && err == nil; i++ {
			err = yield(page[i], list[i])
		}
		return true, err
	})
}

// Snapshot implements [store.Exporter] by one script: the only way in which
// Redis shows many rows as they were at one moment.
func (s *Store) Snapshot(ctx context.Context, fact scope.Scope) (store.Snapshot, error) {
	snap := store.Snapshot{Scope: fact}
	if err := fact.Validate(); err != nil {
		return snap, err
	}
	p := s.place(fact)
	reply, err := s.run(ctx, snapshotScript, []string{p.state(), p.lookup()}, p.base, byKind)
	if err != nil {
		return snap, err
	}
	parts, _ := reply.([]any)
	if len(parts) != 2 {
		return snap, fmt.Errorf("redis: snapshot answered with %T", reply)
	}
	state := s.parseState(fact, hashOf(parts[0]))
	snap.Revision, snap.Watermarks = state.Revision, state.Watermarks
	for member, text := range hashOf(parts[1]) {
		if err := addRow(&snap, member, text); err != nil {
			return snap, err
		}
	}
	sortSnapshot(&snap)
	return snap, nil
}

func addRow(snap *store.Snapshot, member, text string) (err error) {
	switch kind, _, _ := strings.Cut(member, ":"); kind {
	case kindFact:
		err = addTo(&snap.Facts, text)
	case kindVersion:
		err = addTo(&snap.Versions, text)
	case kindEntity:
		err = addTo(&snap.Entities, text)
	case kindEdge:
		err = addTo(&snap.Edges, text)
	case kindHold:
		err = addTo(&snap.Holds, text)
	default:
		err = fmt.Errorf("redis: %w: row of kind %q", store.ErrDamaged, kind)
	}
	return err
}

func addTo[T any](list *[]T, text string) error {
	var v T
	err := decode("row", []byte(text), &v)
	*list = append(*list, v)
	return err
}

func sortSnapshot(snap *store.Snapshot) {
	versions := func(a, b events.Fact) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Revision, b.Revision))
	}
	slices.SortFunc(snap.Facts, versions)
	slices.SortFunc(snap.Versions, versions)
	slices.SortFunc(snap.Entities, func(a, b events.Entity) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(snap.Edges, func(a, b events.Edge) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(snap.Holds, func(a, b events.Hold) int { return cmp.Compare(a.ID, b.ID) })
}
