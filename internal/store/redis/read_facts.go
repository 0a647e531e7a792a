package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// factFields are what a fact is read from; whose it is comes along where that is not
// known already.
var factFields = []string{"b", "use"}

var (
	factReturn  = []any{"b", "use", "okey"}
	factColumns = []any{"@b", "@use", "@okey"}
)

func parseFacts(rows []found, known owners) ([]store.Fact, error) {
	list := make([]store.Fact, 0, len(rows))
	for _, row := range rows {
		if row.empty() {
			continue // gone since it was found
		}
		fact, err := known.whose(row)
		if err != nil {
			return nil, err
		}
		list = append(list, store.Fact{})
		if err := readFact(&list[len(list)-1], fact, row); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// askFacts are the commands that read facts by their keys, as factFields.
func askFacts(p place, ids []string) [][]any {
	commands := make([][]any, len(ids))
	for i, id := range ids {
		commands[i] = []any{"HMGET", p.row(kindFact, id), "b", "use"}
	}
	return commands
}

// Fact implements [store.FactReader].
func (s *Store) Fact(ctx context.Context, sel scope.Selector, id string) (store.Fact, error) {
	if err := sel.Validate(); err != nil {
		return store.Fact{}, err
	}
	if fact, ok := sel.Fact(); ok {
		list, err := s.FactsByID(ctx, fact, []string{id})
		if err == nil && len(list) == 0 {
			err = store.ErrNotFound
		}
		if err != nil {
			return store.Fact{}, err
		}
		return list[0], nil
	}
	return s.firstFact(ctx, of(kindFact).within(s.layout(), sel).tag("id", token(id)))
}

func (s *Store) firstFact(ctx context.Context, q *query) (store.Fact, error) {
	rows, err := s.page(ctx, q, "", []any{"@okey", "ASC"}, 1, factColumns...)
	if err != nil {
		return store.Fact{}, err
	}
	list, err := parseFacts(rows, owners{})
	if err != nil {
		return store.Fact{}, err
	}
	if len(list) == 0 {
		return store.Fact{}, store.ErrNotFound
	}
	return list[0], nil
}

// Version implements [store.FactReader].
func (s *Store) Version(ctx context.Context, sel scope.Selector, at memory.Address) (store.Fact, error) {
	current, err := s.Fact(ctx, sel, at.ID)
	if err == nil && current.Revision == at.Revision {
		return current, nil
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return store.Fact{}, err
	}
	revision := number(clampOrdinal(at.Revision))
	f, err := s.firstFact(ctx, of(kindVersion).within(s.layout(), sel).tag("id", token(at.ID)).between("rev", revision, revision))
	return history(f), err
}

// history is a version that has no vector, and whose accesses, if it had any,
// count for its successor.
func history(f store.Fact) store.Fact {
	f.Strength, f.LastAccessed = f.Confidence, f.CreatedAt
	return f
}

// Versions implements [store.FactReader].
func (s *Store) Versions(ctx context.Context, sel scope.Selector, id string) ([]store.Fact, error) {
	current, err := s.Fact(ctx, sel, id)
	if err != nil {
		return nil, err
	}
	q := of(kindVersion).in(s.place(current.Scope)).tag("id", token(id)).below("rev", clampOrdinal(current.Revision))
	a, err := s.search(ctx, s.searchArgs(q, allRows, returning(factReturn...)...))
	if err != nil {
		return nil, err
	}
	list, err := parseFacts(a.rows, owners{})
	if err != nil {
		return nil, err
	}
	for i := range list {
		list[i] = history(list[i])
	}
	slices.SortFunc(list, byAddress)
	return append(list, current), nil
}

func byAddress(a, b store.Fact) int {
	return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Revision, b.Revision))
}

// Facts implements [store.FactReader].
func (s *Store) Facts(ctx context.Context, sel scope.Selector, q store.FactQuery) ([]store.Fact, error) {
	if err := checkLimit(q.Limit); err != nil {
		return nil, err
	}
	if err := sel.Validate(); err != nil {
		return nil, err
	}
	find := of(kindFact).within(s.layout(), sel)
	narrowFacts(find, q.Session, q.Kinds, q.ValidAt.IsZero(), micros(q.ValidAt), q.IncludeArchived)
	filter := ""
	if c := q.Cursor; c != nil {
		find.atMost("ct", micros(c.CreatedAt))
		filter = fmt.Sprintf("@ct<%d || @oid<'%s'", micros(c.CreatedAt), ordered(c.ID))
	}
	rows, err := s.page(ctx, find, filter, []any{"@ct", "DESC", "@oid", "DESC"}, q.Limit, factColumns...)
	if err != nil {
		return nil, err
	}
	return parseFacts(rows, owners{})
}

// narrowFacts adds the filters of facts. All instants are whole microseconds, so
// that flooring the one asked for changes nothing.
func narrowFacts(q *query, session *string, kinds []events.FactKind, always bool, at int64, archived bool) {
	if session != nil {
		q.tag("ses", token(*session))
	}
	if kinds != nil {
		names := make([]string, len(kinds))
		for i, k := range kinds {
			names[i] = levelTag(string(k))
		}
		q.tag("kind", append(names, absentLevel)...) // a list of none matches none
	}
	if !always {
		q.above("vu", at).atMost("vf", at)
	}
	if !archived {
		q.tag("arch", "0")
	}
}

// FactsByID implements [store.FactReader].
func (s *Store) FactsByID(ctx context.Context, fact scope.Scope, ids []string) ([]store.Fact, error) {
	if err := fact.Validate(); err != nil || len(ids) == 0 {
		return nil, err
	}
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	replies, err := s.pipe(ctx, askFacts(s.place(fact), ids))
	var list []store.Fact
	for _, reply := range replies {
		f := pick(factFields, reply)
		if f["b"] == "" {
			continue
		}
		parsed, err := parseFact(fact, f)
		if err != nil {
			return nil, err
		}
		list = append(list, parsed)
	}
	return list, err
}

// FactsByHash implements [store.FactReader].
func (s *Store) FactsByHash(ctx context.Context, fact scope.Scope, hashes []string) ([]store.Fact, error) {
	if len(hashes) == 0 {
		return nil, fact.Validate()
	}
	return s.allVersions(ctx, fact, byHash, tokens(hashes))
}

// FactsByPredicate implements [store.FactReader].
func (s *Store) FactsByPredicate(ctx context.Context, fact scope.Scope, subject, predicate string) ([]store.Fact, error) {
	return s.allVersions(ctx, fact, byPredicate, []string{token(subject, predicate)})
}

// FactsByTriple implements [store.FactReader].
func (s *Store) FactsByTriple(ctx context.Context, fact scope.Scope, ts []events.Triple) ([]store.Fact, error) {
	if len(ts) == 0 {
		return nil, fact.Validate()
	}
	var tags []string
	for _, t := range ts {
		tags = append(tags, tripleTag(t, events.Many), tripleTag(t, events.One))
	}
	return s.allVersions(ctx, fact, byPredicate, slices.Compact(slices.Sorted(slices.Values(tags))))
}

// allVersions returns newest and earlier versions by (id, revision), in one view.
func (s *Store) allVersions(ctx context.Context, fact scope.Scope, by string, values []string) ([]store.Fact, error) {
	if err := fact.Validate(); err != nil {
		return nil, err
	}
	values = slices.Compact(slices.Sorted(slices.Values(values)))
	rows, err := s.rowsBy(ctx, s.place(fact), factFields, false, everyHit, lookups(by, values)...)
	if err != nil {
		return nil, err
	}
	list := make([]store.Fact, len(rows))
	for i, row := range rows {
		if list[i], err = parseFact(fact, row); err != nil {
			return nil, err
		}
		if row.kind() == kindVersion {
			list[i] = history(list[i])
		}
	}
	slices.SortStableFunc(list, byAddress)
	return slices.CompactFunc(list, func(a, b store.Fact) bool { return byAddress(a, b) == 0 }), nil
}

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
	return decodeBodies[events.Outcome](rows)
}

func decodeBodies[T any](rows []found) ([]T, error) {
	var list []T
	for _, row := range rows {
		if row.empty() {
			continue // expired since it was found
		}
		v, err := decodeBody[T](row.view("b"))
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

func decodeBody[T any](body []byte) (v T, err error) {
	err = decode("row", body, &v)
	return v, err
}
