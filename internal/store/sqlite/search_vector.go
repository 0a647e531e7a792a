package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"sync"

	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// SearchVector implements [store.Searcher] by an exact scan.
func (s *Store) SearchVector(ctx context.Context, sel scope.Selector, vector []float32, q store.SearchQuery) ([]store.Hit, error) {
	f, places, err := s.searchPlaces(ctx, sel, q)
	if err != nil {
		return nil, err
	}
	serving := s.serving.Load()
	switch dimensions := serving.Embedder.Dimensions; {
	case q.Space != 0 && q.Space != serving.ID:
		return nil, fmt.Errorf("sqlite: search space %d, space %d is served: %w", q.Space, serving.ID, store.ErrEmbedder)
	case dimensions == 0:
		return nil, nil // nothing is embedded so far
	case len(vector) != dimensions:
		return nil, fmt.Errorf("sqlite: search vector of %d dimensions, the index has %d: %w", len(vector), dimensions, store.ErrEmbedder)
	}
	query := unit(vector)
	found := scans.Get().(*scan) //nolint:forcetypeassert // only scans are put
	defer scans.Put(found)
	found.reset()
	for _, p := range places {
		docs := p.corpus(f.table).docs
		if docs == 0 {
			continue
		}
		sl, err := serving.vectorCache.open(ctx, slabKey{f.target, p.scopeID}, s.loadSlab(serving, f.table, docs))
		if err != nil {
			return nil, err
		}
		sl.scan(found, query)
	}
	// The vectors may have been dropped while they were loaded.
	if now := s.serving.Load(); now != serving {
		return nil, fmt.Errorf("sqlite: space %d is not served any more: %w", serving.ID, store.ErrEmbedder)
	}
	return s.takeHits(ctx, f, found.rank)
}

// scan is every row that was looked at with its similarity.
type scan struct {
	rows   []int64
	scores []float32
}

var scans = sync.Pool{New: func() any { return new(scan) }}

func (s *scan) reset() { s.rows, s.scores = s.rows[:0], s.scores[:0] }

// rank implements [ranker].
func (s *scan) rank(n int, after candidate) []candidate {
	best := top{n: n, after: after}
	floor := best.floor()
	for i, score := range s.scores {
		if score := float64(score); score >= floor && best.offer(candidate{score, s.rows[i]}) {
			floor = best.floor()
		}
	}
	return best.take()
}

// unit scales a vector to length 1; the zero vector stays.
func unit(v []float32) []float32 {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 {
		return v
	}
	out := make([]float32, len(v))
	scale := 1 / math.Sqrt(sum)
	for i, x := range v {
		out[i] = float32(float64(x) * scale)
	}
	return out
}

// loadSlab reads the vectors of a scope, of which there are at most as many as
// it has documents.
func (s *Store) loadSlab(from *serving, t table, docs int64) func(context.Context, *slab) error {
	return func(ctx context.Context, sl *slab) error {
		dimensions := from.Embedder.Dimensions
		sl.rows = make([]int64, 0, docs)
		sl.values = make([]float32, 0, docs*int64(dimensions))
		err := s.reads.each(ctx, `SELECT row, vector FROM `+from.vectors(t)+` WHERE scope_id = ?`, []any{sl.key.scopeID}, func(row scanner) error {
			var id int64
			var raw sql.RawBytes
			if err := row.Scan(&id, &raw); err != nil {
				return err
			}
			sl.at[id] = len(sl.rows)
			sl.rows = append(sl.rows, id)
			var err error
			sl.values, err = decodeVector(sl.values, raw, dimensions)
			return err
		})
		if 2*len(sl.values) < cap(sl.values) {
			sl.values = slices.Clone(sl.values)
		}
		return err
	}
}
