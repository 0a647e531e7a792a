package sqlite

import (
	"context"
	"fmt"
	"math"

	"palimpsest/internal/store"
)

// PendingVectors implements [store.VectorWriter].
func (s *Store) PendingVectors(ctx context.Context, limit int) ([]store.PendingVector, error) {
	if limit < 1 {
		return nil, fmt.Errorf("sqlite: limit %d is not positive", limit)
	}
	var list []store.PendingVector
	err := s.reads.each(ctx, `SELECT q.target, s.project, s.user, s.agent, coalesce(p.session, s.session),
	  coalesce(e.id, f.id), coalesce(e.source, ''), coalesce(f.revision, 0), coalesce(e.content, f.body ->> '$.text')
	  FROM vector_queue q
	  LEFT JOIN episodes e ON q.target = 2 AND e.row = q.row
	  LEFT JOIN sessions p ON p.id = e.place_id
	  LEFT JOIN facts f ON q.target = 1 AND f.row = q.row
	  JOIN scopes s ON s.id = coalesce(e.scope_id, f.scope_id)
	  ORDER BY q.seq`+atMost, []any{limit}, func(row scanner) error {
		var v store.PendingVector
		err := row.Scan(&v.Ref.Target, &v.Ref.Scope.Project, &v.Ref.Scope.User, &v.Ref.Scope.Agent, &v.Ref.Scope.Session,
			&v.Ref.ID, &v.Ref.Source, &v.Ref.Revision, &v.Text)
		list = append(list, v)
		return err
	})
	return list, err
}

// PutVectors implements [store.VectorWriter].
func (s *Store) PutVectors(ctx context.Context, vectors []store.Vector) error {
	if len(vectors) == 0 {
		return nil
	}
	dimensions := len(vectors[0].Values)
	for _, v := range vectors {
		if err := v.Ref.Scope.Validate(); err != nil {
			return err
		}
		if len(v.Values) != dimensions || dimensions == 0 {
			return fmt.Errorf("sqlite: put vectors of %d and %d dimensions: %w", len(v.Values), dimensions, store.ErrEmbedder)
		}
		for _, x := range v.Values {
			if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
				return fmt.Errorf("sqlite: put vector of %s: holds %g", v.Ref.ID, x)
			}
		}
	}
	var verdict error
	err := s.write(ctx, func(w *writer) error {
		verdict = nil
		switch known := int(s.drawer.dimensions.Load()); {
		case known == 0:
			if err := w.setDimensions(dimensions); err != nil {
				return err
			}
		case known != dimensions:
			verdict = fmt.Errorf("sqlite: put vectors of %d dimensions, the index has %d: %w", dimensions, known, store.ErrEmbedder)
			return nil
		}
		for _, v := range vectors {
			if err := w.putVector(v); err != nil {
				return fmt.Errorf("put vector of %s: %w", v.Ref.ID, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return verdict
}

// putVector stores a vector unless its row is gone or its text another by now.
func (w *writer) putVector(v store.Vector) error {
	t, err := tableOf(v.Ref.Target)
	if err != nil {
		return err
	}
	scopeRow, err := w.scope(v.Ref.Scope.Fact())
	if err != nil || scopeRow == nil {
		return err
	}
	var row int64
	var found bool
	if t.target == store.Facts {
		found, err = w.one(`SELECT row FROM facts WHERE id = ? AND scope_id = ? AND revision = ?`,
			[]any{v.Ref.ID, scopeRow.id, v.Ref.Revision}, &row)
	} else {
		found, err = w.one(`SELECT e.row FROM episodes e WHERE e.scope_id = ?1 AND e.id = ?2 AND e.source = ?3
		  AND e.place_id = (SELECT id FROM sessions WHERE scope_id = ?1 AND session = ?4)`,
			[]any{scopeRow.id, v.Ref.ID, v.Ref.Source, v.Ref.Scope.Session}, &row)
	}
	if err != nil || !found {
		return err
	}
	if err := w.exec(`INSERT OR REPLACE INTO `+t.vectors+` (scope_id, row, vector) VALUES (?, ?, ?)`,
		scopeRow.id, row, encodeVector(v.Values)); err != nil {
		return err
	}
	if err := w.exec(`DELETE FROM vector_queue WHERE target = ? AND row = ?`, t.target, row); err != nil {
		return err
	}
	if t.target == store.Facts {
		w.unshelve(store.Facts, row)
	}
	key, values := slabKey{t.target, scopeRow.id}, append([]float32(nil), v.Values...)
	w.then(func() { w.store.drawer.apply(key, change{row, values}) })
	return nil
}

// queueVector flags a row as lacking its vector.
func (w *writer) queueVector(target store.Target, row int64) error {
	if err := w.exec(`INSERT OR IGNORE INTO vector_queue (target, row) VALUES (?, ?)`, target, row); err != nil {
		return fmt.Errorf("queue vector: %w", err)
	}
	return nil
}

func (w *writer) dropVector(t table, scopeID, row int64) error {
	if err := w.exec(`DELETE FROM `+t.vectors+` WHERE scope_id = ? AND row = ?`, scopeID, row); err != nil {
		return fmt.Errorf("drop vector: %w", err)
	}
	w.then(func() { w.store.drawer.apply(slabKey{t.target, scopeID}, change{row: row}) })
	return nil
}
