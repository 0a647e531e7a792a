package sqlite

import (
	"cmp"
	"context"
	"fmt"

	"palimpsest/internal/store"
)

// PutVectors implements [store.VectorWriter].
func (s *Store) PutVectors(ctx context.Context, vectors []store.Vector) error {
	if len(vectors) == 0 {
		return nil
	}
	if err := store.CheckVectors(vectors); err != nil {
		return err
	}
	dimensions := len(vectors[0].Values)
	var verdict error
	err := s.write(ctx, func(w *writer) error {
		sp, ok := w.spaces().find(vectors[0].Ref.Space)
		if verdict = sp.public().Takes(dimensions); !ok {
			verdict = fmt.Errorf("space %d is gone: %w", vectors[0].Ref.Space, store.ErrEmbedder)
		}
		if verdict != nil {
			return nil //nolint:nilerr // a refusal is a result
		}
		if sp.Embedder.Dimensions == 0 {
			decided := *w.spaces()
			decided.Served.Embedder.Dimensions = dimensions
			if err := w.setSpaces(decided); err != nil {
				return err
			}
		}
		for _, v := range vectors {
			if err := w.putVector(sp, v); err != nil {
				return fmt.Errorf("put vector of %s: %w", v.Ref.ID, err)
			}
		}
		return nil
	})
	if err = cmp.Or(err, verdict); err != nil {
		return fmt.Errorf("put vectors: %w", err)
	}
	return nil
}

// putVector stores a vector unless its row is gone or its text another by now.
func (w *writer) putVector(sp space, v store.Vector) error {
	r, found, err := w.embedded(v.Ref)
	if err != nil || !found {
		return err
	}
	if err := w.exec(`INSERT OR REPLACE INTO `+sp.vectors(r.table)+` (scope_id, row, vector) VALUES (?, ?, ?)`,
		r.scope.id, r.row, encodeVector(v.Values)); err != nil {
		return err
	}
	if err := w.exec(`DELETE FROM `+sp.queue()+` WHERE target = ? AND row = ?`, r.target, r.row); err != nil {
		return err
	}
	if r.target == store.Facts {
		w.unshelve(store.Facts, r.row)
	}
	key, values := slabKey{r.target, r.scope.id}, append([]float32(nil), v.Values...)
	w.then(func() {
		if now := w.store.serving.Load(); now.ID == sp.ID {
			now.vectorCache.apply(key, change{r.row, values})
		}
	})
	return nil
}

func (w *writer) dropVector(t table, scopeID, row int64) error {
	for _, sp := range w.spaces().all() {
		if err := w.exec(`DELETE FROM `+sp.vectors(t)+` WHERE scope_id = ? AND row = ?`, scopeID, row); err != nil {
			return fmt.Errorf("drop vector: %w", err)
		}
	}
	w.then(func() { w.store.serving.Load().vectorCache.apply(slabKey{t.target, scopeID}, change{row: row}) })
	return nil
}
