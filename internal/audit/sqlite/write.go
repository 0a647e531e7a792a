package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"palimpsest/internal/audit"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

const (
	insertEffect = `INSERT INTO effects
		(project, scope, revision, sequence, id, source, at, correlation, causation, effect)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`
	sameEffect   = `SELECT id = ? AND sequence = ? FROM effects WHERE project = ? AND scope = ? AND revision = ?`
	insertPlace  = `INSERT INTO places (project, scope, user_id, agent_id, session_id) VALUES (?, ?, ?, ?, ?)`
	selectPlace  = `SELECT id FROM places WHERE project = ? AND scope = ?`
	insertRecord = `INSERT INTO record_rows
		(place, revision, idx, project, sequence, applied_at, kind, rule, correlation, fact_id, value, known_ms, model, reason, rule_id)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`
)

// Write implements [audit.Writer] in one transaction.
func (l *Log) Write(ctx context.Context, effects []events.Event[events.EffectCommitted]) error {
	ctx, leave, err := l.request(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if err := l.file.Check(); err != nil {
		return fmt.Errorf("audit sqlite: %w", err)
	}
	tx, err := l.begin(ctx)
	if err != nil {
		return fmt.Errorf("audit sqlite: begin: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // after Commit there is nothing to undo
	if err := insert(ctx, tx, effects); err != nil {
		return fmt.Errorf("audit sqlite: write: %w", err)
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("audit sqlite: commit: %w", err)
	}
	l.resting.Reset(restAfter)
	return nil
}

func insert(ctx context.Context, tx *sql.Tx, effects []events.Event[events.EffectCommitted]) error {
	whole, err := tx.PrepareContext(ctx, insertEffect)
	if err != nil {
		return err
	}
	defer whole.Close() //nolint:errcheck // the transaction's end closes it
	record, err := tx.PrepareContext(ctx, insertRecord)
	if err != nil {
		return err
	}
	defer record.Close() //nolint:errcheck // the transaction's end closes it
	one, err := tx.PrepareContext(ctx, insertTally)
	if err != nil {
		return err
	}
	defer one.Close() //nolint:errcheck // the transaction's end closes it
	packed, err := newPacker()
	if err != nil {
		return err
	}
	for _, e := range effects {
		blob, err := packed.pack(e.Data)
		if err != nil {
			return err
		}
		s := e.Data.Scope
		done, err := whole.ExecContext(ctx, s.Project, s.Key(), e.Data.Revision, e.Sequence, e.ID, e.Source,
			e.Time.UnixMicro(), e.CorrelationID, e.CausationID, blob)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			if err != nil {
				return err
			}
			if err := known(ctx, tx, e); err != nil {
				return err
			}
			continue // its records are known too
		}
		if err := tally(ctx, one, e.Data); err != nil {
			return err
		}
		at, err := placeOf(ctx, tx, s)
		if err != nil {
			return err
		}
		for _, r := range audit.Records(e) {
			reason, ruleID := told(r)
			if _, err := record.ExecContext(ctx, at, r.Revision, r.Index, s.Project, r.Sequence, r.AppliedAt.UnixMicro(),
				r.Kind, r.Rule, r.CorrelationID, r.FactID, r.Value(), knownMS(r), r.Model(), reason, ruleID); err != nil {
				return err
			}
		}
	}
	return nil
}

// placeOf is the id of a scope, which it gets with its first record.
func placeOf(ctx context.Context, tx *sql.Tx, s scope.Scope) (id int64, err error) {
	err = tx.QueryRowContext(ctx, selectPlace, s.Project, s.Key()).Scan(&id)
	if !errors.Is(err, sql.ErrNoRows) {
		return id, err
	}
	done, err := tx.ExecContext(ctx, insertPlace, s.Project, s.Key(), s.User, s.Agent, s.Session)
	if err != nil {
		return 0, err
	}
	return done.LastInsertId()
}

// known tells an effect that comes again from one of another history, whose
// revision the log has from before the streams were lost. Its identity alone
// does not: the same message may be committed again, at another place.
func known(ctx context.Context, tx *sql.Tx, e events.Event[events.EffectCommitted]) error {
	s, same := e.Data.Scope, false
	if err := tx.QueryRowContext(ctx, sameEffect, e.ID, e.Sequence, s.Project, s.Key(), e.Data.Revision).Scan(&same); err != nil {
		return err
	}
	if !same {
		return fmt.Errorf("%w: scope %s, revision %d, sequence %d", audit.ErrOtherHistory, s, e.Data.Revision, e.Sequence)
	}
	return nil
}
