package redis

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"palimpsest/internal/store"
)

// PendingVectors implements [store.VectorWriter].
func (s *Store) PendingVectors(ctx context.Context, limit int) ([]store.PendingVector, error) {
	if limit < 1 {
		return nil, fmt.Errorf("redis: limit %d is not positive", limit)
	}
	q := of(kindFact, kindEpisode).atLeast("q", 1)
	options := append([]any{"SORTBY", "q", "ASC"}, returning(append([]any{"k", "c", "ord"}, factReturn...)...)...)
	a, err := s.search(ctx, s.searchArgs(q, limit, options...))
	if err != nil {
		return nil, err
	}
	var list []store.PendingVector
	for _, row := range a.rows {
		target := store.Episodes
		if row.get("k") == kindFact {
			target = store.Facts
		}
		hits, err := parseHits(target, []found{row}, owners{})
		if err != nil {
			return nil, err
		}
		for _, h := range hits {
			list = append(list, pendingVector(h))
		}
	}
	return list, nil
}

func pendingVector(h store.Hit) store.PendingVector {
	if f := h.Fact; f != nil {
		return store.PendingVector{Ref: store.VectorRef{Target: store.Facts, Scope: f.Scope, ID: f.ID, Revision: f.Revision}, Text: f.Text}
	}
	e := h.Episode
	return store.PendingVector{Ref: store.VectorRef{Target: store.Episodes, Scope: e.Scope, ID: e.ID, Source: e.Source}, Text: e.Content}
}

// PutVectors implements [store.VectorWriter]. A vector of another size is refused
// before it is sent: the index would leave out the whole row, its text too.
func (s *Store) PutVectors(ctx context.Context, vectors []store.Vector) error {
	if len(vectors) == 0 {
		return nil
	}
	dimensions := len(vectors[0].Values)
	for _, v := range vectors {
		if err := checkVector(v, dimensions); err != nil {
			return err
		}
	}
	switch known := int(s.tenure().dimensions.Load()); {
	case known == 0:
		if err := s.setDimensions(ctx, dimensions); err != nil {
			return fmt.Errorf("put vectors: %w", err)
		}
	case known != dimensions:
		return fmt.Errorf("redis: put vectors of %d dimensions, the index has %d: %w", dimensions, known, store.ErrEmbedder)
	}
	return s.putVectors(ctx, vectors)
}

func checkVector(v store.Vector, dimensions int) error {
	if err := v.Ref.Scope.Validate(); err != nil {
		return err
	}
	if v.Ref.Target != store.Facts && v.Ref.Target != store.Episodes {
		return fmt.Errorf("redis: put vector: target %d is neither facts nor episodes", v.Ref.Target)
	}
	if len(v.Values) != dimensions || dimensions == 0 {
		return fmt.Errorf("redis: put vectors of %d and %d dimensions: %w", len(v.Values), dimensions, store.ErrEmbedder)
	}
	for _, x := range v.Values {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return fmt.Errorf("redis: put vector of %s: holds %g", v.Ref.ID, x)
		}
	}
	return nil
}

// putVectors runs one short script a row, all in one round trip, so that the
// server answers others between them.
func (s *Store) putVectors(ctx context.Context, vectors []store.Vector) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end()
	err := s.loaded(ctx, putVectorScript, func() error {
		p := s.client.Pipeline()
		for _, v := range vectors {
			at := s.place(v.Ref.Scope.Fact())
			key, revision := at.episode(v.Ref.Scope.Session, v.Ref.Source, v.Ref.ID), ""
			if v.Ref.Target == store.Facts {
				key, revision = at.row(kindFact, v.Ref.ID), strconv.FormatUint(v.Ref.Revision, 10)
			}
			putVectorScript.EvalSha(ctx, p, []string{key}, revision, encodeVector(v.Values))
		}
		_, err := p.Exec(ctx) // the first error of any
		return err
	})
	if err := explain(err); err != nil {
		return fmt.Errorf("put vectors: %w", err)
	}
	return nil
}
