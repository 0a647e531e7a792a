package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"

	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// SearchVector implements [store.Searcher] by an exact scan.
func (s *Store) SearchVector(ctx context.Context, sel scope.Selector, vector []float32, q store.SearchQuery) ([]store.Hit, error) {
	t, places, err := s.searchPlaces(ctx, sel, q)
	if err != nil {
		return nil, err
	}
	switch dimensions := int(s.drawer.dimensions.Load()); {
	case dimensions == 0:
		return nil, nil // nothing is embedded so far
	case len(vector) != dimensions:
		return nil, fmt.Errorf("sqlite: search vector of %d dimensions, the index has %d: %w", len(vector), dimensions, store.ErrEmbedder)
	}
	query := unit(vector)
	var found []candidate
	for i, p := range places {
		if p.corpus(t).docs == 0 {
			continue
		}
		sl, err := s.drawer.open(ctx, slabKey{t.target, p.scopeID}, s.loadSlab(t, p.corpus(t).docs))
		if err != nil {
			return nil, err
		}
		found = sl.scan(found, i, query)
	}
	return s.takeHits(ctx, t, places, found, q)
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
func (s *Store) loadSlab(t table, docs int64) func(context.Context, *slab) error {
	return func(ctx context.Context, sl *slab) error {
		sl.rows = make([]int64, 0, docs)
		sl.values = make([]float32, 0, docs*s.drawer.dimensions.Load())
		err := s.reads.each(ctx, `SELECT row, vector FROM `+t.vectors+` WHERE scope_id = ?`, []any{sl.key.scopeID}, func(row scanner) error {
			var id int64
			var raw sql.RawBytes
			if err := row.Scan(&id, &raw); err != nil {
				return err
			}
			sl.at[id] = len(sl.rows)
			sl.rows = append(sl.rows, id)
			sl.values = decodeVector(sl.values, raw)
			return nil
		})
		if 2*len(sl.values) < cap(sl.values) {
			sl.values = slices.Clone(sl.values)
		}
		return err
	}
}
