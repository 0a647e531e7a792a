package redis

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"palimpsest/internal/lex"
	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// maxQueryTerms bounds the work of a query that is a whole document.
const maxQueryTerms = 128

// Of a text search the server ranks up to this many rows more than are asked for, twice
// as many at most, and the scope's own statistics order them.
const (
	overFetch    = 50
	minimumFetch = 20
	fetchMore    = 8 // times as many, where the filter kept too few
)

// SearchText implements [store.Searcher]. The server's BM25 weighs words by the
// texts of all tenants, so it only chooses the candidates: scores come from what
// the selector holds.
func (s *Store) SearchText(ctx context.Context, sel scope.Selector, text string, q store.SearchQuery) ([]store.Hit, error) {
	sel, possible, err := narrowed(sel, q)
	terms := asked(text)
	if err != nil || !possible || len(terms) == 0 {
		return nil, err
	}
	c := corpus{kind: kindOf(q.Target), sel: withoutSession(sel, q.Target), terms: terms}
	return s.untilEnough(q, max(q.Limit+min(q.Limit, overFetch), minimumFetch), func(fetch int) (hits []store.Hit, read int, err error) {
		known, whole := owners{}, []any(nil)
		rank, a, err := s.weigh(ctx, c, func(rank bm25, in ...place) []any {
			known = ownersOf(in...)
			held, telling := rank.telling(terms, fetch)
			if len(held) == 0 {
				return nil
			}
			options := append([]any{"VERBATIM", "SCORER", "BM25STD"}, returning(append([]any{"t"}, hitReturn(q.Target, known)...)...)...)
			search := func(by []string) []any {
				return s.searchArgs(s.finder(sel, q, in...).rankedBy(held, by), fetch, options...)
			}
			if whole = nil; len(telling) < len(held) {
				whole = search(held)
			}
			return search(telling)
		})
		if err == nil && whole != nil && len(a.rows) < fetch {
			// The counts promised more rows. A filter left some out, or a row holds several
			// of the terms.
			a.free()
			a, err = s.search(ctx, whole)
		}
		if err != nil {
			return nil, 0, err
		}
		if q.Counts != nil {
			*q.Counts = rank.counts(text)
		}
		rank.order(terms, a.rows)
		read = len(a.rows)
		if q.Filter == nil {
			a.rows = a.rows[:min(read, q.Limit)]
		}
		hits, err = parseHits(q.Target, a.rows, known)
		a.free()
		return hits, read, err
	})
}

// untilEnough searches for more rows as long as too few of those that were found
// match the filter of q and there are more.
func (s *Store) untilEnough(q store.SearchQuery, fetch int, search func(fetch int) (hits []store.Hit, read int, err error)) ([]store.Hit, error) {
	for ; ; fetch *= fetchMore {
		hits, read, err := search(fetch)
		if err != nil {
			return nil, err
		}
		hits = q.Filter.Hits(hits)
		if q.Filter == nil || len(hits) >= q.Limit || read < fetch || fetch >= allRows {
			hits = hits[:min(len(hits), q.Limit)]
			slices.SortStableFunc(hits, compareHits)
			return hits, nil
		}
	}
}

// compareHits orders by score, and the newer of equals first.
func compareHits(a, b store.Hit) int {
	if n := cmp.Compare(b.Score, a.Score); n != 0 {
		return n
	}
	if a.Fact != nil {
		return b.Fact.CreatedAt.Compare(a.Fact.CreatedAt)
	}
	return cmp.Or(b.Episode.Timestamp.Compare(a.Episode.Timestamp), cmp.Compare(b.Episode.Ordinal, a.Episode.Ordinal))
}

// anyTerm keeps rows that hold any of the terms.
func (q *query) anyTerm(terms []string) *query { return q.clause("@t:(" + q.anyOf(terms) + ")") }

func (q *query) anyOf(terms []string) string {
	names := make([]string, len(terms))
	for i, t := range terms {
		names[i] = q.param(t)
	}
	return strings.Join(names, "|")
}

// weightless is for what a row must fulfil and is not ranked by.
const weightless = "=>{$weight:0}"

// rankedBy keeps rows that hold any of the telling terms, and ranks them by all terms that
// they hold. The server scores tags too, by counts that include rows from before their last
// change, which can make a tag count more than all words. And within an intersection it
// scores a disjunction by some of the terms that a row holds, so that each is a clause of
// its own.
func (q *query) rankedBy(terms, telling []string) *query {
	for i, clause := range q.clauses {
		if !strings.HasSuffix(clause, "]") { // a range has none
			q.clauses[i] += weightless
		}
	}
	if len(terms) == 1 {
		return q.anyTerm(terms)
	}
	q.clause("(@t:(" + q.anyOf(telling) + "))" + weightless)
	for name := range strings.SplitSeq(q.anyOf(terms), "|") {
		q.clause("~@t:(" + name + ")")
	}
	return q
}

// asked are the terms of a query that are looked for.
func asked(text string) []string {
	return lex.Distinct(indexTerms(text), maxQueryTerms)
}

// withoutSession widens a selector of episodes to the fact scopes that they are
// in: a session's words are weighed by all of its scope.
func withoutSession(sel scope.Selector, target store.Target) scope.Selector {
	if target == store.Episodes && sel.Session != nil && (sel.User == nil || *sel.User != "") {
		sel.Session = nil
	}
	return sel
}

func kindOf(t store.Target) string {
	if t == store.Facts {
		return kindFact
	}
	return kindEpisode
}

// narrowed is the selector of the rows that q asks for among those of sel; possible
// is false where it has none.
func narrowed(sel scope.Selector, q store.SearchQuery) (_ scope.Selector, possible bool, err error) {
	if err := checkList(sel, q.Limit); err != nil {
		return sel, false, err
	}
	if q.Target != store.Facts && q.Target != store.Episodes {
		return sel, false, fmt.Errorf("redis: search: target %d is neither facts nor episodes", q.Target)
	}
	if q.Target == store.Episodes && q.Session != nil {
		if sel.Session != nil && *sel.Session != *q.Session {
			return sel, false, nil // no episode is in two sessions
		}
		sel.Session = q.Session
	}
	return sel, true, nil
}

// finder begins the search that q asks for within a selector that was narrowed. The
// places, if any, are all fact scopes that hold rows of it.
//
// Where no row can match the filter, the search finds none.
func (s *Store) finder(sel scope.Selector, q store.SearchQuery, places ...place) *query {
	find, instant := new(query), "et" // of facts, which alone are archived or not
	if q.Target == store.Episodes {
		find, instant = of(kindEpisode), "ts"
	}
	switch {
	case len(places) == 0:
		find.within(s.layout(), sel)
	case q.Target == store.Episodes && sel.Session != nil:
		find.in(places...).tag("x", levelTag(*sel.Session))
	default:
		find.in(places...)
	}
	if !find.matching(indexedOf(q.Target), q.Filter) {
		find.tag("k", noTag)
	}
	if q.Target == store.Facts {
		narrowFacts(find, q.Session, q.Kinds, q.ValidAt.IsZero(), micros(q.ValidAt), false)
	}
	if !q.After.IsZero() {
		find.above(instant, micros(q.After))
	}
	if !q.Before.IsZero() {
		find.below(instant, store.CeilMicros(q.Before))
	}
	return find
}

// hitReturn are the fields that a hit is made from.
func hitReturn(t store.Target, known owners) []any {
	switch {
	case t == store.Episodes:
		return []any{"b", "c", "ord"}
	case len(known) > 0:
		return []any{"b", "use"}
	}
	return factReturn
}

func parseHits(t store.Target, rows []found, known owners) ([]store.Hit, error) {
	rows = slices.DeleteFunc(rows, func(row found) bool { return row.empty() }) // gone since they were found
	hits := make([]store.Hit, len(rows))
	for i, row := range rows {
		hits[i].Score = row.score
	}
	if t == store.Facts {
		list, err := parseFacts(rows, known)
		for i := range list {
			hits[i].Fact = &list[i]
		}
		return hits, err
	}
	list, err := parseEpisodes(rows)
	for i := range list {
		hits[i].Episode = &list[i]
	}
	return hits, err
}
