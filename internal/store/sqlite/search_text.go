package sqlite

import (
	"context"
	"fmt"

	"palimpsest/internal/lex"
	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// maxQueryTerms bounds the work of a query that is a whole document.
const maxQueryTerms = 128

// SearchText implements [store.Searcher]. FTS5 stores the posting lists; BM25
// is worked out here, because FTS5's own reads the term's postings of everybody
// and weighs one tenant's words by all tenants' texts.
func (s *Store) SearchText(ctx context.Context, sel scope.Selector, text string, q store.SearchQuery) ([]store.Hit, error) {
	f, places, err := s.searchPlaces(ctx, sel, q)
	if err != nil {
		return nil, err
	}
	all := corpus{}
	for _, p := range places {
		c := p.corpus(f.table)
		all.docs += c.docs
		all.terms += c.terms
	}
	terms := lex.Distinct(indexTerms(text), maxQueryTerms)
	if len(terms) == 0 || all.docs == 0 {
		return nil, nil
	}
	lists, err := s.postingLists(ctx, f.table, places, terms)
	if err != nil {
		return nil, err
	}
	if q.Counts != nil {
		*q.Counts = countsOf(all, lists, terms)
	}
	return s.takeHits(ctx, f, newBM25(all, lists, len(terms)).rank)
}

// countsOf sums the lists of all places, which come by place, then by term.
func countsOf(all corpus, lists []postingList, terms []string) store.TextCounts {
	c := store.TextCounts{Documents: uint64(all.docs), Terms: uint64(all.terms), Holding: make(map[string]uint64, len(terms))}
	for i, l := range lists {
		c.Holding[terms[i%len(terms)]] += uint64(len(l.postings))
	}
	return c
}

// searchPlaces resolves what to look for and the places to look through. Several
// sessions of one name never share a fact scope, so each scope occurs once.
func (s *Store) searchPlaces(ctx context.Context, sel scope.Selector, q store.SearchQuery) (f finder, places []place, err error) {
	if err := store.CheckLimit(q.Limit); err != nil {
		return f, nil, err
	}
	switch q.Target {
	case store.Facts:
		f = findFacts(q)
		places, err = s.factPlaces(ctx, sel)
	case store.Episodes:
		if q.Session == nil {
			q.Session = sel.Session
		} else if sel.Session != nil && *sel.Session != *q.Session {
			return f, nil, nil // no episode is in two sessions
		}
		f = findEpisodes(q)
		places, err = s.episodePlaces(ctx, sel)
	default:
		return f, nil, fmt.Errorf("sqlite: search: target %d is neither facts nor episodes", q.Target)
	}
	return f, places, err
}

func (p place) corpus(t table) corpus {
	if t.target == store.Facts {
		return p.facts
	}
	return p.episodes
}
