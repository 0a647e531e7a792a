package sqlite

import (
	"context"
	"math"
	"slices"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// The parameters of BM25 (Robertson and Zaragoza 2009), at their usual values.
const (
	bm25K1 = 1.2
	bm25B  = 0.75
)

// maxQueryTerms bounds the work of a query that is a whole document.
const maxQueryTerms = 128

// SearchText implements [store.Searcher]. FTS5 stores the posting lists; BM25
// is worked out here, because FTS5's own reads the term's postings of everybody
// and weighs one tenant's words by all tenants' texts.
func (s *Store) SearchText(ctx context.Context, sel scope.Selector, text string, q store.SearchQuery) ([]store.Hit, error) {
	t, places, err := s.searchPlaces(ctx, sel, q)
	if err != nil {
		return nil, err
	}
	terms := distinct(indexTerms(text))
	if len(terms) == 0 || len(places) == 0 {
		return nil, nil
	}
	found, err := s.scoreText(ctx, t, places, terms)
	if err != nil {
		return nil, err
	}
	return s.takeHits(ctx, t, places, found, q)
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

// searchPlaces resolves the target and the places to look through. Several
// sessions of one name never share a fact scope, so each scope occurs once.
func (s *Store) searchPlaces(ctx context.Context, sel scope.Selector, q store.SearchQuery) (table, []place, error) {
	t, err := tableOf(q.Target)
	if err != nil {
		return t, nil, err
	}
	if err := checkLimit(q.Limit); err != nil {
		return t, nil, err
	}
	if q.Target == store.Episodes {
		places, err := s.episodePlaces(ctx, sel)
		return t, places, err
	}
	places, err := s.factPlaces(ctx, sel)
	return t, places, err
}

// scoreText returns the documents that hold any of the terms with their BM25
// score; the statistics are those of all places together.
func (s *Store) scoreText(ctx context.Context, t table, places []place, terms []string) ([]candidate, error) {
	all := corpus{}
	for _, p := range places {
		c := p.corpus(t)
		all.docs += c.docs
		all.terms += c.terms
	}
	if all.docs == 0 {
		return nil, nil
	}
	average := max(1, float64(all.terms)/float64(all.docs))
	merged := make([][]posting, len(places))
	for _, term := range terms {
		lists := make([][]posting, len(places))
		held := 0
		for i, p := range places {
			if p.corpus(t).docs == 0 {
				continue
			}
			list, err := s.postingList(ctx, t, p.scopeID, term)
			if err != nil {
				return nil, err
			}
			lists[i] = list
			held += len(list)
		}
		weight := math.Log1p((float64(all.docs) - float64(held) + 0.5) / (float64(held) + 0.5))
		for i, list := range lists {
			for j := range list {
				p := &list[j]
				p.score *= weight * (bm25K1 + 1) / (p.score + bm25K1*(1-bm25B+bm25B*docLength(p.doc)/average))
			}
			merged[i] = mergePostings(merged[i], list)
		}
	}
	var found []candidate
	for i, list := range merged {
		found = slices.Grow(found, len(list))
		for _, p := range list {
			found = append(found, candidate{score: p.score, row: docRow(p.doc), place: i})
		}
	}
	return found, nil
}

func (p place) corpus(t table) corpus {
	if t.target == store.Facts {
		return p.facts
	}
	return p.episodes
}

// mergePostings adds two ascending lists.
func mergePostings(a, b []posting) []posting {
	switch {
	case len(a) == 0:
		return b
	case len(b) == 0:
		return a
	}
	out := make([]posting, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].doc < b[0].doc:
			out, a = append(out, a[0]), a[1:]
		case a[0].doc > b[0].doc:
			out, b = append(out, b[0]), b[1:]
		default:
			out = append(out, posting{a[0].doc, a[0].score + b[0].score})
			a, b = a[1:], b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// takeHits reads the best candidates that pass the query's filters, until there
// are enough or no more.
func (s *Store) takeHits(ctx context.Context, t table, places []place, found []candidate, q store.SearchQuery) ([]store.Hit, error) {
	ranked := ranking{found}
	var hits []store.Hit
	for chunk := q.Limit; len(hits) < q.Limit && ranked.len() > 0; chunk = min(4*chunk, 4096) {
		best := ranked.take(chunk)
		more, err := s.readHits(ctx, t, places, best, q)
		if err != nil {
			return nil, err
		}
		hits = append(hits, more...)
	}
	return hits[:min(q.Limit, len(hits))], nil
}

// readHits reads those of best that pass, in their order.
func (s *Store) readHits(ctx context.Context, t table, places []place, best []candidate, q store.SearchQuery) ([]store.Hit, error) {
	rows := make([]int64, len(best))
	for i, c := range best {
		rows[i] = c.row
	}
	byRow := make(map[int64]store.Hit, len(best))
	if err := s.readRows(ctx, t, rows, q, byRow); err != nil {
		return nil, err
	}
	var hits []store.Hit
	for _, c := range best {
		hit, ok := byRow[c.row]
		if !ok || hit.Episode != nil && !inPlace(places[c.place], hit.Episode) {
			continue
		}
		hit.Score = c.score
		hits = append(hits, hit)
	}
	return hits, nil
}

// inPlace sorts out the other sessions of a scope where the selector named one.
func inPlace(p place, e *memory.Episode) bool { return p.placeID == 0 || e.Scope.Session == p.session }

func (s *Store) readRows(ctx context.Context, t table, rows []int64, q store.SearchQuery, into map[int64]store.Hit) error {
	if t.target == store.Episodes {
		narrow, args := narrowEpisodes(q.Session, q.After, q.Before)
		return s.reads.each(ctx, selectEpisode+` WHERE e.row IN (SELECT value FROM json_each(?))`+narrow,
			append([]any{jsonList(rows)}, args...), func(row scanner) error {
				e, id, err := scanEpisodeRow(row)
				into[id] = store.Hit{Episode: &e}
				return err
			})
	}
	narrow, args := narrowFacts(factFilter{
		session: q.Session, kinds: q.Kinds, validAt: q.ValidAt, after: q.After, before: q.Before,
	})
	return s.reads.each(ctx, selectFact+` WHERE f.row IN (SELECT value FROM json_each(?))`+narrow,
		append([]any{jsonList(rows)}, args...), func(row scanner) error {
			f, id, err := scanFact(row)
			into[id] = store.Hit{Fact: &f}
			return err
		})
}
