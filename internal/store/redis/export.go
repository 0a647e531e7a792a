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

// statePage reads states by (project, key), from behind a place in that order. The place
// is of our own encoding, which holds no quote.
func (s *Store) statePage(ctx context.Context, q *query, after string) ([]found, error) {
	filter := ""
	if after != "" {
		filter = fmt.Sprintf("@okey>'%s'", after)
	}
	return s.page(ctx, q, filter, []any{"@okey", "ASC"}, pageSize, "@p", "@u", "@a", "@x", "@okey")
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
	after := ""
	for {
		rows, err := s.statePage(ctx, of(kindState).within(s.layout(), sel).holding(), after)
		if err != nil {
			return err
		}
		for _, row := range rows {
			fact, err := owner(row)
			if err != nil {
				return err
			}
			if !yield(fact) {
				return nil
			}
		}
		if len(rows) < pageSize {
			return nil
		}
		after = rows[len(rows)-1].get("okey")
	}
}

// eachState reads the rows of all scopes within sel, page by page.
func (s *Store) eachState(ctx context.Context, sel scope.Selector, yield func(scope.Scope, fields) bool) error {
	var page []scope.Scope
	var failed error
	flush := func() bool {
		list, err := s.states(ctx, page)
		if failed = err; err != nil {
			return false
		}
		for i, f := range list {
			if !yield(page[i], f) {
				return false
			}
		}
		page = page[:0]
		return true
	}
	err := s.Scopes(ctx, sel, func(fact scope.Scope) bool {
		page = append(page, fact)
		return len(page) < pageSize || flush()
	})
	if err == nil && failed == nil && len(page) > 0 {
		flush()
	}
	return cmp.Or(failed, err)
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
	v, err := decodeBody[T]([]byte(text))
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
