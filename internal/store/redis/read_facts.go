package redis

import (
	"context"
	"fmt"
	"maps"
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
	return parseAll(rows, func(f *store.Fact, row found) error {
		fact, err := known.whose(row)
		if err != nil {
			return err
		}
		return readFact(f, fact, row)
	})
}

// Fact implements [store.FactReader].
func (s *Store) Fact(ctx context.Context, sel scope.Selector, id string) (store.Fact, error) {
	if err := sel.Validate(); err != nil {
		return store.Fact{}, err
	}
	if fact, ok := sel.Fact(); ok {
		return store.Only(s.FactsByID(ctx, fact, []string{id}))
	}
	return s.firstFact(ctx, of(kindFact).within(s.layout(), sel).tag("id", token(id)))
}

func (s *Store) firstFact(ctx context.Context, q *query) (store.Fact, error) {
	rows, err := s.page(ctx, q, "", []any{"@okey", "ASC"}, 1, factColumns...)
	if err != nil {
		return store.Fact{}, err
	}
	return store.Only(parseFacts(rows, owners{}))
}

// Version implements [store.FactReader].
func (s *Store) Version(ctx context.Context, sel scope.Selector, at memory.Address) (store.Fact, error) {
	return store.VersionOf(ctx, s, sel, at, func() (store.Fact, error) {
		revision := number(clampOrdinal(at.Revision))
		f, err := s.firstFact(ctx, of(kindVersion).within(s.layout(), sel).tag("id", token(at.ID)).between("rev", revision, revision))
		return store.History(f), err
	})
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
		list[i] = store.History(list[i])
	}
	return append(store.SortVersions(list), current), nil
}

// Facts implements [store.FactReader].
func (s *Store) Facts(ctx context.Context, sel scope.Selector, q store.FactQuery) ([]store.Fact, error) {
	if err := checkList(sel, q.Limit); err != nil {
		return nil, err
	}
	var list []store.Fact
	var err error
	if !q.Earlier {
		if list, err = s.newest(ctx, sel, q); err != nil || q.ValidAt.IsZero() {
			return list, err
		}
	}
	earlier, err := s.earlier(ctx, sel, q)
	if err != nil || len(earlier) == 0 {
		return list, err
	}
	return store.NewestFacts(append(list, earlier...), q.Limit), nil
}

// newest lists newest versions that q keeps.
func (s *Store) newest(ctx context.Context, sel scope.Selector, q store.FactQuery) ([]store.Fact, error) {
	find := of(kindFact).within(s.layout(), sel)
	if !find.matching(indexedFacts, q.Filter) {
		return nil, nil
	}
	narrowFacts(find, q.Session, q.Kinds, q.ValidAt.IsZero(), micros(q.ValidAt), q.IncludeArchived)
	return store.ReadPages(q.Limit,
		func(last *store.Fact) ([]store.Fact, error) { return s.factPage(ctx, find, q.Behind(last), q.Limit) },
		func(page []store.Fact) ([]store.Fact, error) { return q.Filter.Facts(page), nil })
}

// factPage reads newest versions behind a cursor.
func (s *Store) factPage(ctx context.Context, all *query, c *store.FactCursor, limit int) ([]store.Fact, error) {
	find, filter := &query{clauses: slices.Clone(all.clauses), params: slices.Clone(all.params)}, ""
	if c != nil {
		find.atMost("ct", micros(c.CreatedAt))
		filter = fmt.Sprintf("@ct<%d || @oid<'%s'", micros(c.CreatedAt), ordered(c.ID))
	}
	rows, err := s.page(ctx, find, filter, []any{"@ct", "DESC", "@oid", "DESC"}, limit, factColumns...)
	if err != nil {
		return nil, err
	}
	return parseFacts(rows, owners{})
}

// earlier lists the versions that held at the instant of q and that a newer one,
// which had not begun, has succeeded.
func (s *Store) earlier(ctx context.Context, sel scope.Selector, q store.FactQuery) ([]store.Fact, error) {
	find := of(kindFact).within(s.layout(), sel).above("vf", micros(q.ValidAt)).atLeast("rev", 2)
	return store.ReadPages(q.Limit,
		func(last *store.Fact) ([]store.Fact, error) { return s.factPage(ctx, find, q.Behind(last), q.Limit) },
		func(page []store.Fact) ([]store.Fact, error) {
			held, err := s.asOf(ctx, page, q)
			return q.Filter.Facts(held), err
		})
}

// asOf puts the versions that held at the instant of q in the place of newest ones
// that had not begun.
func (s *Store) asOf(ctx context.Context, newest []store.Fact, q store.FactQuery) ([]store.Fact, error) {
	if len(newest) == 0 {
		return nil, nil
	}
	places, ids := map[scope.Scope]place{}, make([]string, len(newest))
	for i, f := range newest {
		places[f.Scope], ids[i] = s.place(f.Scope), token(f.ID)
	}
	find := of(kindVersion).in(slices.Collect(maps.Values(places))...).tag("id", ids...)
	a, err := s.search(ctx, s.searchArgs(find, allRows, returning(factReturn...)...))
	if err != nil {
		return nil, err
	}
	earlier, err := parseFacts(a.rows, owners{})
	if err != nil {
		return nil, err
	}
	for i := range earlier {
		earlier[i] = store.History(earlier[i])
	}
	return q.Held(newest, earlier), nil
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
	p, keys := s.place(fact), make([]string, len(ids))
	for i, id := range ids {
		keys[i] = p.row(kindFact, id)
	}
	rows, err := s.rowsAt(ctx, keys, factFields)
	if err != nil {
		return nil, err
	}
	return parseAll(rows, func(f *store.Fact, row fields) error { return readFact(f, fact, row) })
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
	rows, err := s.rowsBy(ctx, s.place(fact), factFields, lookups(by, values)...)
	if err != nil {
		return nil, err
	}
	list := make([]store.Fact, len(rows))
	for i, row := range rows {
		if list[i], err = parseFact(fact, row); err != nil {
			return nil, err
		}
		if row.kind() == kindVersion {
			list[i] = store.History(list[i])
		}
	}
	return store.SortVersions(list), nil
}
