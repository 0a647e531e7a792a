package redis

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// SearchVector implements [store.Searcher].
func (s *Store) SearchVector(ctx context.Context, sel scope.Selector, vector []float32, q store.SearchQuery) ([]store.Hit, error) {
	sel, possible, err := narrowed(sel, q)
	if err != nil || !possible {
		return nil, err
	}
	find := s.finder(sel, q)
	served := s.tenure().spaces.Load().served()
	if err := q.CheckVector(vector, served.public()); err != nil {
		return nil, err
	}
	if served.Embedder.Dimensions == 0 {
		return nil, nil // nothing is embedded so far
	}
	blob := encodeVector(vector)
	if blob == nil {
		return nil, nil // the zero vector is like nothing
	}
	// Without this the server may walk the graph while it filters, which is not
	// exact; so it may only where the selector spans scopes. A flat index is exact
	// either way, and the server knows when one scan of it costs less than a look at
	// each row that passes.
	policy := ""
	if s.cfg.Vectors == HNSW && (sel.User != nil || sel.Session != nil) {
		policy = " HYBRID_POLICY ADHOC_BF"
	}
	known := owners{}
	if fact, ok := sel.Fact(); ok {
		known = ownersOf(s.place(fact))
	}
	args := append([]any{"SORTBY", "distance"}, returning(append([]any{"distance"}, hitReturn(q.Target, known)...)...)...)
	return s.untilEnough(q, q.Limit, func(fetch int) (hits []store.Hit, read int, err error) {
		near := query{clauses: slices.Clone(find.clauses), params: slices.Clone(find.params)}
		k := near.param(fetch)
		text := "(" + near.text() + ")=>[KNN " + k + " @" + served.vector() + " " + near.param(blob) + policy + " AS distance]"
		a, err := s.search(ctx, s.searchArgs(&query{clauses: []string{text}, params: near.params}, fetch, args...))
		if err != nil {
			return nil, 0, err
		}
		// The vectors may have been dropped before the search.
		if now := s.tenure().spaces.Load().served(); now.ID != served.ID {
			return nil, 0, fmt.Errorf("redis: space %d is not served any more: %w", served.ID, store.ErrEmbedder)
		}
		for i, row := range a.rows {
			a.rows[i].score = 1 - toFloat(row.get("distance")) // a distance, in words
		}
		read = len(a.rows)
		hits, err = parseHits(q.Target, a.rows, known)
		a.free()
		return hits, read, err
	})
}

// encodeVector is a vector in the server's form; nil for one without a direction,
// which has no cosine.
func encodeVector(v []float32) []byte {
	zero := true
	out := make([]byte, 4*len(v))
	for i, x := range v {
		zero = zero && x == 0
		binary.LittleEndian.PutUint32(out[4*i:], math.Float32bits(x))
	}
	if zero {
		return nil
	}
	return out
}
