package redis

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// maxQueryTerms bounds the work of a query that is a whole document.
const maxQueryTerms = 128

// Of a text search the server ranks this many rows for each one asked for, and
// the scope's own statistics order them.
const (
	overFetch    = 2
	minimumFetch = 32
)

// SearchText implements [store.Searcher]. The server's BM25 weighs words by the
// texts of all tenants, so it only chooses the candidates: scores come from what
// the selector holds. What a hit is made from is read of the best alone.
func (s *Store) SearchText(ctx context.Context, sel scope.Selector, text string, q store.SearchQuery) ([]store.Hit, error) {
	find, err := s.finder(sel, q)
	if err != nil || find == nil {
		return nil, err
	}
	terms := asked(text)
	if len(terms) == 0 {
		return nil, nil
	}
	limit := max(overFetch*q.Limit, minimumFetch)
	options := append([]any{"VERBATIM", "SCORER", "BM25STD", "WITHSCORES"}, returning("t")...)
	candidates := s.searchArgs(find.anyTerm(terms), limit, options...)
	corpus := corpus{kind: kindOf(q.Target), sel: withoutSession(sel, q.Target), terms: terms}
	rank, a, err := s.weigh(ctx, corpus, candidates)
	if err != nil {
		return nil, err
	}
	rank.order(terms, a.rows)
	hits, err := s.readHits(ctx, q.Target, a.rows[:min(len(a.rows), q.Limit)])
	slices.SortStableFunc(hits, compareHits)
	return hits, err
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
func (q *query) anyTerm(terms []string) *query {
	names := make([]string, len(terms))
	for i, t := range terms {
		names[i] = q.param(t)
	}
	return q.clause("@t:(" + strings.Join(names, "|") + ")")
}

// distinct keeps the first of equal terms, in a list of its own.
func distinct(terms []string) []string {
	seen := make(map[string]bool, len(terms))
	out := make([]string, 0, len(terms))
	for _, t := range terms {
		if !seen[t] {
			seen[t] = true
			out = append(out, t)
		}
	}
	return out
}

// asked are the terms of a query that are looked for.
func asked(text string) []string {
	terms := indexTerms(text)
	terms = distinct(terms[:min(len(terms), 8*maxQueryTerms)])
	return terms[:min(len(terms), maxQueryTerms)]
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

// finder begins the search that q asks for; find is nil where nothing can match.
func (s *Store) finder(sel scope.Selector, q store.SearchQuery) (find *query, err error) {
	if err := checkLimit(q.Limit); err != nil {
		return nil, err
	}
	if err := sel.Validate(); err != nil {
		return nil, err
	}
	instant := "et"
	switch q.Target {
	case store.Facts:
		find = of(kindFact).within(s.layout(), sel)
		narrowFacts(find, q.Session, q.Kinds, q.ValidAt.IsZero(), micros(q.ValidAt), false)
	case store.Episodes:
		if q.Session != nil && sel.Session != nil && *sel.Session != *q.Session {
			return nil, nil //nolint:nilnil // no episode is in two sessions
		}
		if q.Session != nil {
			sel.Session = q.Session
		}
		find = of(kindEpisode).within(s.layout(), sel)
		instant = "ts"
	default:
		return nil, fmt.Errorf("redis: search: target %d is neither facts nor episodes", q.Target)
	}
	if !q.After.IsZero() {
		find.above(instant, micros(q.After))
	}
	if !q.Before.IsZero() {
		find.below(instant, store.CeilMicros(q.Before))
	}
	return find, nil
}

// hitFields are what a hit is made from.
func hitFields(t store.Target) []string {
	if t == store.Facts {
		return []string{"b", "strength", "count", "used", "q", "p", "u", "a", "x"}
	}
	return []string{"b", "c", "ord"}
}

// readHits reads the rows that were found.
func (s *Store) readHits(ctx context.Context, t store.Target, rows []found) ([]store.Hit, error) {
	names := hitFields(t)
	commands := make([][]any, len(rows))
	for i, row := range rows {
		commands[i] = append(make([]any, 0, len(names)+2), "HMGET", row.key)
		for _, name := range names {
			commands[i] = append(commands[i], name)
		}
	}
	replies, err := s.pipe(ctx, commands)
	if err != nil {
		return nil, err
	}
	for i, reply := range replies {
		rows[i].fields = pick(names, reply)
	}
	return parseHits(t, rows)
}

func parseHits(t store.Target, rows []found) ([]store.Hit, error) {
	hits := make([]store.Hit, 0, len(rows))
	for _, row := range rows {
		if row.fields["b"] == "" {
			continue // gone since it was found
		}
		h := store.Hit{Score: row.score}
		if t == store.Facts {
			list, err := parseFacts([]found{row})
			if err != nil {
				return nil, err
			}
			h.Fact = &list[0]
		} else {
			var e memory.Episode
			e, err := parseEpisode(row.fields)
			if err != nil {
				return nil, err
			}
			h.Episode = &e
		}
		hits = append(hits, h)
	}
	return hits, nil
}
