package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// pageSize is how many rows an iteration reads before it yields them; no
// connection is held while the caller works.
const pageSize = 256

// eachPage calls yield with the rows of pages, until yield returns false or a page is not
// full.
func eachPage[R any](read func() ([]R, error), yield func(R) bool) error {
	for {
		page, err := read()
		if err != nil {
			return err
		}
		for _, row := range page {
			if !yield(row) {
				return nil
			}
		}
		if len(page) < pageSize {
			return nil
		}
	}
}

// ReadWhole implements [store.WholeReader]. The process that reads holds the lock of
// the file, which loses nothing meanwhile.
func (s *Store) ReadWhole(_ context.Context, read func() error) error { return read() }

// State implements [store.StateReader].
func (s *Store) State(ctx context.Context, fact scope.Scope) (memory.State, error) {
	state := memory.State{Scope: fact, Watermarks: map[string]uint64{}}
	if err := fact.Validate(); err != nil {
		return state, err
	}
	state.Incarnation = s.cfg.Born(fact.Project, fact.User) // where there is no row
	// One statement is one view of the database; a transaction around two would
	// prepare both anew each time.
	err := s.reads.each(ctx, `SELECT s.incarnation, s.last_ordinal, s.revision, s.audit_seq, r.rule, r.watermark
	  FROM scopes s LEFT JOIN rule_states r ON r.scope_id = s.id AND r.watermark IS NOT NULL
	  WHERE s.project = ? AND s.key = ?`,
		[]any{fact.Project, fact.Key()}, func(row scanner) error {
			var rule sql.NullString
			var mark sql.Null[uint64]
			err := row.Scan(&state.Incarnation, &state.LastOrdinal, &state.Revision, &state.AuditSeq, &rule, &mark)
			if rule.Valid {
				state.Watermarks[rule.String] = mark.V
			}
			return err
		})
	s.followed()
	return state, err
}

// Pending implements [store.Schedule].
func (s *Store) Pending(ctx context.Context, rule string, yield func(store.Pending) bool) error {
	if err := s.watchRule(ctx, rule); err != nil {
		return err
	}
	project, key := "", ""
	return eachPage(func() ([]store.Pending, error) {
		page, err := s.pendingPage(ctx, rule, project, key)
		if len(page) > 0 {
			last := page[len(page)-1].Scope
			project, key = last.Project, last.Key()
		}
		return page, err
	}, yield)
}

func (s *Store) pendingPage(ctx context.Context, rule, project, key string) ([]store.Pending, error) {
	var page []store.Pending
	err := s.reads.within(ctx, func(v *view) error {
		var ids []int64
		err := v.each(ctx, `SELECT s.id, s.project, s.user, s.agent, s.session, s.incarnation, s.last_ordinal, s.revision, s.audit_seq,
		    EXISTS (SELECT 1 FROM session_ends e WHERE e.scope_id = s.id AND e.last_ordinal > coalesce(r.watermark, 0)),
		    c.above, c.upto, c.at, c.attempt
		  FROM pending p CROSS JOIN scopes s ON s.id = p.scope_id
		  LEFT JOIN claims c ON c.scope_id = s.id AND c.rule = p.rule
		  LEFT JOIN rule_states r ON r.scope_id = s.id AND r.rule = p.rule
		  WHERE p.rule = ? AND (p.project, p.key) > (?, ?) ORDER BY p.project, p.key LIMIT ?`,
			[]any{rule, project, key, pageSize}, func(row scanner) error {
				var id int64
				var p store.Pending
				var c claimRow
				err := row.Scan(&id, &p.Scope.Project, &p.Scope.User, &p.Scope.Agent, &p.Scope.Session,
					&p.Incarnation, &p.LastOrdinal, &p.Revision, &p.AuditSeq, &p.Ended, &c.from, &c.to, &c.at, &c.attempt)
				p.Claim = c.claim()
				ids, page = append(ids, id), append(page, p)
				return err
			})
		if err != nil {
			return err
		}
		for i, id := range ids {
			if page[i].Watermarks, err = readWatermarks(ctx, v, id); err != nil {
				return err
			}
		}
		return nil
	})
	return page, err
}

// watchRule starts the upkeep of a rule's pending rows, which begins with one
// look at every scope.
func (s *Store) watchRule(ctx context.Context, rule string) error {
	var known int
	found, err := s.reads.one(ctx, `SELECT 1 FROM watched WHERE rule = ?`, []any{rule}, &known)
	if err != nil || found {
		return err
	}
	return s.write(ctx, func(w *writer) error {
		if err := w.rows.flush(w); err != nil {
			return err
		}
		w.forget() // the cached rows were computed without this rule
		if err := w.exec(`INSERT OR IGNORE INTO watched (rule) VALUES (?)`, rule); err != nil {
			return fmt.Errorf("watch rule: %w", err)
		}
		err := w.exec(`INSERT OR IGNORE INTO pending (rule, project, key, scope_id)
		  SELECT ?1, s.project, s.key, s.id FROM scopes s
		  LEFT JOIN rule_states r ON r.scope_id = s.id AND r.rule = ?1
		  WHERE s.last_ordinal > coalesce(r.watermark, 0)`, rule)
		if err != nil {
			return fmt.Errorf("watch rule: %w", err)
		}
		return nil
	})
}

// LastFire implements [store.Schedule].
func (s *Store) LastFire(ctx context.Context, rule string) (time.Time, error) {
	var at int64
	found, err := s.reads.one(ctx, `SELECT at FROM fires WHERE rule = ?`, []any{rule}, &at)
	if err != nil || !found {
		return time.Time{}, err
	}
	return fromMicros(at), nil
}

// SetLastFire implements [store.Schedule].
func (s *Store) SetLastFire(ctx context.Context, rule string, at time.Time) error {
	return s.write(ctx, func(w *writer) error {
		return w.exec(`INSERT INTO fires (rule, at) VALUES (?, ?)
		  ON CONFLICT (rule) DO UPDATE SET at = max(at, excluded.at)`, rule, micros(at))
	})
}

// EndsAbove implements [store.Schedule].
func (s *Store) EndsAbove(ctx context.Context, fact scope.Scope, from uint64) ([]events.SessionEnd, error) {
	scopeID, err := s.scopeID(ctx, fact)
	if err != nil {
		return nil, err
	}
	var ends []events.SessionEnd
	err = s.reads.each(ctx, `SELECT session, last_ordinal, cause, at FROM session_ends
	  WHERE scope_id = ? AND last_ordinal > ? ORDER BY last_ordinal, session`,
		[]any{scopeID, clampOrdinal(from)}, func(row scanner) error {
			var e events.SessionEnd
			var at int64
			err := row.Scan(&e.Session, &e.LastOrdinal, &e.Cause, &at)
			e.At = fromMicros(at)
			ends = append(ends, e)
			return err
		})
	return ends, err
}

var _ store.Schedule = (*Store)(nil)
