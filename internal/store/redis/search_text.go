package redis

import (
	"cmp"
	"context"
	"fmt"
	"math"
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
	minimumFetch = 64
)

// The constants of BM25.
const (
	k1 = 1.2
	b1 = 0.75
)

// SearchText implements [store.Searcher]. The server's BM25 weighs words by the
// texts of all tenants, so it only chooses the candidates: scores come from what
// the selector holds.
func (s *Store) SearchText(ctx context.Context, sel scope.Selector, text string, q store.SearchQuery) ([]store.Hit, error) {
	find, err := s.finder(sel, q)
	if err != nil || find == nil {
		return nil, err
	}
	terms := distinct(indexTerms(text))
	if len(terms) == 0 {
		return nil, nil
	}
	target := kindOf(q.Target)
	commands := make([][]any, 0, len(terms)+2)
	commands = append(commands, s.corpusArgs(sel, q.Target))
	for _, term := range terms {
		holding := of(target).within(s.layout(), withoutSession(sel, q.Target)).anyTerm([]string{term})
		commands = append(commands, s.searchArgs(holding, 0, "VERBATIM"))
	}
	limit := max(overFetch*q.Limit, minimumFetch)
	options := append([]any{"VERBATIM", "SCORER", "BM25STD", "WITHSCORES"}, hitReturn(q.Target)...)
	commands = append(commands, s.searchArgs(find.anyTerm(terms), limit, options...))
	replies, err := s.pipe(ctx, commands)
	if err != nil {
		return nil, err
	}
	rank := bm25{frequency: map[string]float64{}}
	for i, reply := range replies[:len(replies)-1] {
		a, err := parseAnswer(reply)
		switch {
		case err != nil:
			return nil, err
		case i > 0:
			rank.frequency[terms[i-1]] = float64(a.total)
		case len(a.rows) > 0:
			rank.docs, rank.length = a.rows[0].float("docs"), a.rows[0].float("length")
		}
	}
	a, err := parseAnswer(replies[len(replies)-1])
	if err != nil {
		return nil, err
	}
	for i := range a.rows {
		a.rows[i].score = rank.score(a.rows[i].fields["t"])
	}
	slices.SortStableFunc(a.rows, func(a, b found) int { return cmp.Compare(b.score, a.score) })
	hits, err := parseHits(q.Target, a.rows[:min(len(a.rows), q.Limit)])
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

// distinct keeps the first of equal terms.
func distinct(terms []string) []string {
	seen := make(map[string]bool, len(terms))
	return slices.DeleteFunc(terms[:min(len(terms), 8*maxQueryTerms)], func(t string) bool {
		if seen[t] || len(seen) >= maxQueryTerms {
			return true
		}
		seen[t] = true
		return false
	})
}

// bm25 scores texts by the documents of one selector.
type bm25 struct {
	docs, length float64
	frequency    map[string]float64 // documents that hold a term
}

func (r bm25) score(terms string) (sum float64) {
	counts := map[string]float64{}
	length := 0.0
	for term := range strings.FieldsSeq(terms) {
		counts[term]++
		length++
	}
	average := max(r.length/max(r.docs, 1), 1)
	for term, n := range r.frequency {
		if tf := counts[term]; tf > 0 {
			idf := math.Log1p((max(r.docs-n, 0) + 0.5) / (n + 0.5))
			sum += idf * tf * (k1 + 1) / (tf + k1*(1-b1+b1*length/average))
		}
	}
	return sum
}

// corpusArgs sums what the states of the selected scopes say of their texts.
func (s *Store) corpusArgs(sel scope.Selector, target store.Target) []any {
	docs, length := "@fd", "@fl"
	q := of(kindState)
	if target == store.Episodes {
		docs, length = "@ed", "@el"
		sel = withoutSession(sel, target)
	}
	return s.aggregateArgs(q.within(s.layout(), sel), "GROUPBY", 0, "REDUCE", "SUM", 1, docs, "AS", "docs", "REDUCE", "SUM", 1, length, "AS", "length")
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

// hitReturn names what a hit is made from.
func hitReturn(t store.Target) []any {
	if t == store.Facts {
		return returning(append(slices.Clone(factReturn), "t")...)
	}
	return returning("b", "c", "ord", "t")
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
