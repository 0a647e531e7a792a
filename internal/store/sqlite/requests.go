package sqlite

import (
	"context"
	"fmt"
	"time"

	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// sweepInterval is how often writes look for expired rows.
const sweepInterval = time.Minute

// Begin implements [store.Requests].
func (s *Store) Begin(ctx context.Context, r store.Request) (*store.Request, error) {
	var earlier *store.Request
	err := s.write(ctx, func(w *writer) error {
		earlier = nil
		if err := w.sweep(); err != nil {
			return err
		}
		known := store.Request{Project: r.Project, Route: r.Route, Key: r.Key}
		var expires int64
		found, err := w.one(`SELECT body_hash, correlation, status, body, expires FROM requests
		  WHERE project = ? AND route = ? AND key = ? AND expires > ?`,
			[]any{r.Project, r.Route, r.Key, micros(s.cfg.Now())},
			&known.BodyHash, &known.CorrelationID, &known.Status, &known.Body, &expires)
		if err != nil {
			return err
		}
		if found {
			known.Expires = fromMicros(expires)
			earlier = &known
			return nil
		}
		r.Status, r.Body = 0, nil
		return w.putRequest(r)
	})
	if err != nil {
		return nil, err
	}
	if earlier != nil && earlier.BodyHash != r.BodyHash {
		return nil, store.ErrMismatch
	}
	return earlier, nil
}

// Finish implements [store.Requests].
func (s *Store) Finish(ctx context.Context, r store.Request) error {
	return s.write(ctx, func(w *writer) error { return w.putRequest(r) })
}

func (w *writer) putRequest(r store.Request) error {
	err := w.exec(`INSERT OR REPLACE INTO requests (project, route, key, body_hash, correlation, status, body, expires)
	  VALUES (?, ?, ?, ?, ?, ?, ?, ?)`, r.Project, r.Route, r.Key, r.BodyHash, r.CorrelationID, r.Status, r.Body, micros(r.Expires))
	if err != nil {
		return fmt.Errorf("put request: %w", err)
	}
	return nil
}

// Cached implements [store.Cache].
func (s *Store) Cached(ctx context.Context, fact scope.Scope, key string) ([]byte, error) {
	scopeID, err := s.scopeID(ctx, fact)
	if err != nil {
		return nil, err
	}
	var value []byte
	_, err = s.reads.one(ctx, `SELECT value FROM cache WHERE scope_id = ? AND key = ? AND expires > ?`,
		[]any{scopeID, key, micros(s.cfg.Now())}, &value)
	return value, err
}

// PutCached implements [store.Cache].
func (s *Store) PutCached(ctx context.Context, fact scope.Scope, key string, value []byte, expires time.Time) error {
	if err := fact.Validate(); err != nil {
		return err
	}
	if value == nil {
		value = []byte{}
	}
	return s.write(ctx, func(w *writer) error {
		row, err := w.makeScope(fact)
		if err != nil {
			return err
		}
		if err := w.exec(`INSERT OR REPLACE INTO cache (scope_id, key, value, expires) VALUES (?, ?, ?, ?)`,
			row.id, key, value, micros(expires)); err != nil {
			return fmt.Errorf("put cached: %w", err)
		}
		return w.sweep()
	})
}

// sweep deletes some expired rows, once an interval.
func (w *writer) sweep() error {
	if w.store.cfg.Building {
		return nil
	}
	now := w.store.cfg.Now()
	if now.Sub(w.swept) < sweepInterval && !now.Before(w.swept) {
		return nil
	}
	for _, t := range []string{"requests", "cache", "outcomes"} {
		err := w.exec(`DELETE FROM `+t+` WHERE row IN (SELECT row FROM `+t+` WHERE expires <= ? ORDER BY expires LIMIT 1000)`, micros(now))
		if err != nil {
			return fmt.Errorf("sweep %s: %w", t, err)
		}
	}
	if err := w.sweepOutcomes(micros(now), 1000); err != nil {
		return err
	}
	w.swept = now
	return nil
}
