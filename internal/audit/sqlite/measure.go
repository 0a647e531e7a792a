package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"palimpsest/internal/audit"
	"palimpsest/pkg/events"
)

const (
	insertTally = `INSERT INTO tallies
		(project, scope, revision, user_id, agent_id, session_id, applied_at, rule, extractor, episodes, candidates, adds, spent)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`
	updateRecord = `UPDATE record_rows SET value = ?, known_ms = ?, model = ?, reason = ?, rule_id = ?
		WHERE place = (SELECT id FROM places WHERE project = ? AND scope = ?) AND revision = ? AND idx = ?`
	// unmeasured effects are those with NOOPs of logs from before reasons, and those of
	// logs of the first schema. The latter are looked for in all effects, so they come
	// last: what the limit leaves out is not looked for.
	unmeasured = `SELECT p.project, p.scope, r.revision FROM (
			SELECT DISTINCT place, revision FROM record_rows WHERE kind = 'noop' AND reason IS NULL LIMIT 500
		) r JOIN places p ON p.id = r.place
		UNION ALL SELECT e.project, e.scope, e.revision FROM effects e
		LEFT JOIN tallies t ON t.project = e.project AND t.scope = e.scope AND t.revision = e.revision
		WHERE t.project IS NULL LIMIT 500`
)

// tally is what reports count of an effect.
func tally(ctx context.Context, insert *sql.Stmt, e events.EffectCommitted) error {
	s := e.Scope
	var spent sql.NullString
	if len(e.Spent) > 0 {
		raw, err := json.Marshal(e.Spent)
		if err != nil {
			return err
		}
		spent = sql.NullString{String: string(raw), Valid: true}
	}
	_, err := insert.ExecContext(ctx, s.Project, s.Key(), e.Revision, s.User, s.Agent, s.Session, e.CommittedAt.UnixMicro(),
		e.Rule, e.Extractor, e.Tally.Episodes, e.Tally.Candidates, audit.Adds(e), spent)
	return err
}

// knownMS is NULL where it is not measurable.
func knownMS(r audit.Record) sql.NullInt64 {
	ms, ok := r.Known()
	return sql.NullInt64{Int64: ms, Valid: ok}
}

// told are the reason and the rule id of a record, where reports count by them.
func told(r audit.Record) (reason, ruleID string) {
	if r.Told() == "" {
		return "", ""
	}
	return string(r.Reason), r.RuleID
}

// measure makes up for what a log of an earlier schema did not count, before its
// first report; a report that is given up goes on the next time.
func (l *Log) measure(ctx context.Context) error {
	l.measuring.Lock()
	defer l.measuring.Unlock()
	for !l.measured {
		places, err := l.unmeasured(ctx)
		if err == nil {
			err = l.measureSome(ctx, places)
		}
		if err != nil {
			return fmt.Errorf("count earlier effects: %w", err)
		}
		l.measured = len(places) == 0
	}
	return nil
}

func (l *Log) unmeasured(ctx context.Context) (places []place, err error) {
	rows, err := l.file.Read.QueryContext(ctx, unmeasured)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	for rows.Next() {
		var at place
		if err := rows.Scan(&at.project, &at.scope, &at.revision); err != nil {
			return nil, err
		}
		places = append(places, at)
	}
	return places, rows.Err()
}

func (l *Log) measureSome(ctx context.Context, places []place) error {
	tx, err := l.begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit there is nothing to undo
	one, err := tx.PrepareContext(ctx, insertTally)
	if err != nil {
		return err
	}
	defer one.Close() //nolint:errcheck // the transaction's end closes it
	record, err := tx.PrepareContext(ctx, updateRecord)
	if err != nil {
		return err
	}
	defer record.Close() //nolint:errcheck // the transaction's end closes it
	for _, at := range places {
		e, err := l.effect(ctx, at)
		if err != nil {
			return err
		}
		for _, r := range audit.Records(e) {
			reason, ruleID := told(r)
			if _, err := record.ExecContext(ctx, r.Value(), knownMS(r), r.Model(), reason, ruleID, at.project, at.scope, at.revision, r.Index); err != nil {
				return err
			}
		}
		if err := tally(ctx, one, e.Data); err != nil {
			return err
		}
	}
	return tx.Commit()
}
