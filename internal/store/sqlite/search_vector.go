package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// SearchVector implements [store.Searcher] by an exact scan, and in a scope of which
// memory holds sketches by an exact comparison with those that the sketches choose.
func (s *Store) SearchVector(ctx context.Context, sel scope.Selector, vector []float32, q store.SearchQuery) ([]store.Hit, error) {
	f, places, err := s.searchPlaces(ctx, sel, q)
	if err != nil {
		return nil, err
	}
	serving := s.serving.Load()
	if err := q.CheckVector(vector, serving.public()); err != nil {
		return nil, err
	}
	if serving.Embedder.Dimensions == 0 {
		return nil, nil // nothing is embedded so far
	}
	found := nearest{store: s, ctx: ctx, serving: serving, table: f.table, query: unit(vector), limit: q.Limit, after: unbeaten}
	found.scan = scans.Get().(*scan) //nolint:forcetypeassert // only scans are put
	defer scans.Put(found.scan)
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
		if sl.sketcher == nil {
			sl.scan(found.scan, found.query)
		} else {
			found.far = append(found.far, distant{slab: sl})
		}
	}
	hits, err := s.takeHits(ctx, f, found.rank)
	// The vectors may have been dropped while they were read.
	if now := s.serving.Load(); now != serving {
		return nil, fmt.Errorf("sqlite: space %d is not served any more: %w", serving.ID, store.ErrEmbedder)
	}
	if err = errors.Join(err, found.err); err != nil {
		return nil, err
	}
	// Later candidates of sketches may be the nearer ones.
	slices.SortStableFunc(hits, func(a, b store.Hit) int { return cmp.Compare(b.Score, a.Score) })
	return hits, nil
}

// scan is every row that was looked at with its similarity.
type scan struct {
	rows   []int64
	scores []float32
	unlike []uint16 // of the sketches of one slab
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

// loadRows is how many vectors one read of a load brings.
const loadRows = 20_000

// loadSlab reads the vectors of a scope, of which there are about as many as
// it has documents.
func (s *Store) loadSlab(from *serving, t table, docs int64) func(context.Context, *slab) error {
	return func(ctx context.Context, sl *slab) error {
		dimensions := from.Embedder.Dimensions
		done, err := from.vectorCache.turn(ctx, docs*int64(dimensions)*4)
		if err != nil {
			return err
		}
		defer done()
		sl.room(docs, dimensions, from.vectorCache.budget)
		vector := make([]float32, 0, dimensions)
		for last, read := int64(math.MinInt64), loadRows; read == loadRows; {
			read = 0
			err := s.reads.each(ctx, `SELECT row, vector FROM `+from.vectors(t)+` WHERE scope_id = ? AND row > ? ORDER BY row`+atMost,
				[]any{sl.key.scopeID, last, loadRows}, func(row scanner) error {
					var raw sql.RawBytes
					err := row.Scan(&last, &raw)
					if err == nil {
						vector, err = decodeVector(vector[:0], raw, dimensions)
					}
					if err == nil {
						sl.add(last, vector)
						read++
					}
					return err
				})
			if err != nil {
				return err
			}
		}
		return nil
	}
}
