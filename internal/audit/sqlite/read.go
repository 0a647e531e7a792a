package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"strings"

	"palimpsest/internal/audit"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// place is where a record stands.
type place struct {
	project, scope string
	revision       uint64
}

// History implements [audit.Log].
func (l *Log) History(ctx context.Context, project, factID string) ([]audit.Record, error) {
	if factID == "" {
		return nil, nil // a record without a fact is in no history
	}
	return l.find(ctx, `SELECT project, scope, revision, idx FROM records
		WHERE project = ? AND fact_id = ? AND fact_id <> '' ORDER BY applied_at, scope, revision, idx`, project, factID)
}

// Records implements [audit.Log].
func (l *Log) Records(ctx context.Context, sel scope.Selector, q audit.Query) ([]audit.Record, error) {
	if q.Limit < 1 || q.Limit > audit.MaxRecords {
		return nil, fmt.Errorf("limit %d is outside 1 to %d: %w", q.Limit, audit.MaxRecords, audit.ErrQuery)
	}
	where, args := selected(sel)
	and := func(condition string, arg any) {
		where, args = append(where, condition), append(args, arg)
	}
	if q.AfterSequence > 0 {
		and("sequence > ?", q.AfterSequence)
	}
	if !q.From.IsZero() {
		and("applied_at >= ?", q.From.UnixMicro())
	}
	if !q.To.IsZero() {
		and("applied_at < ?", q.To.UnixMicro())
	}
	if q.Rule != "" {
		and("rule = ?", q.Rule)
	}
	if q.CorrelationID != "" {
		and("correlation = ?", q.CorrelationID)
	}
	if len(q.Kinds) > 0 {
		where = append(where, "kind IN (?"+strings.Repeat(", ?", len(q.Kinds)-1)+")")
		for _, k := range q.Kinds {
			args = append(args, string(k))
		}
	}
	return l.find(ctx, "SELECT project, scope, revision, idx FROM records WHERE "+
		strings.Join(where, " AND ")+" ORDER BY sequence, idx LIMIT ?", append(args, q.Limit)...)
}

// find runs a query for places and takes the records out of their effects, each
// of which is expanded once.
func (l *Log) find(ctx context.Context, query string, args ...any) ([]audit.Record, error) {
	ctx, leave, err := l.request(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	places, indexes, err := l.places(ctx, query, args)
	if err != nil {
		return nil, fmt.Errorf("audit sqlite: find records: %w", err)
	}
	known := map[place][]audit.Record{}
	out := make([]audit.Record, 0, len(places))
	for i, at := range places {
		records, ok := known[at]
		if !ok {
			e, err := l.effect(ctx, at)
			if err != nil {
				return nil, fmt.Errorf("audit sqlite: read effect %d of %s: %w", at.revision, at.scope, err)
			}
			records = audit.Records(e)
			known[at] = records
		}
		if indexes[i] < len(records) {
			out = append(out, records[indexes[i]])
		}
	}
	return out, nil
}

func (l *Log) places(ctx context.Context, query string, args []any) ([]place, []int, error) {
	rows, err := l.file.Read.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	var places []place
	var indexes []int
	for rows.Next() {
		var at place
		var i int
		if err := rows.Scan(&at.project, &at.scope, &at.revision, &i); err != nil {
			return nil, nil, err
		}
		places, indexes = append(places, at), append(indexes, i)
	}
	return places, indexes, rows.Err()
}

func (l *Log) effect(ctx context.Context, at place) (events.Event[events.EffectCommitted], error) {
	var e events.Event[events.EffectCommitted]
	var blob []byte
	err := l.file.Read.QueryRowContext(ctx, `SELECT sequence, id, source, correlation, causation, effect FROM effects
		WHERE project = ? AND scope = ? AND revision = ?`, at.project, at.scope, at.revision).
		Scan(&e.Sequence, &e.ID, &e.Source, &e.CorrelationID, &e.CausationID, &blob)
	if err != nil {
		return e, err
	}
	e.Data, err = unpack(blob)
	e.Kind, e.Scope = e.Data.Kind(), e.Data.Scope
	return e, err
}

// Effects implements [audit.EffectArchive]; it reads one effect at a time, so that the
// caller may take as long as it likes over each.
func (l *Log) Effects(ctx context.Context, fact scope.Scope, after uint64) iter.Seq2[events.Event[events.EffectCommitted], error] {
	return func(yield func(events.Event[events.EffectCommitted], error) bool) {
		for {
			e, err := l.next(ctx, fact, after)
			if errors.Is(err, sql.ErrNoRows) {
				return
			}
			if err != nil {
				yield(e, fmt.Errorf("audit sqlite: read effects of %s: %w", fact, err))
				return
			}
			if !yield(e, nil) {
				return
			}
			after = e.Data.Revision
		}
	}
}

func (l *Log) next(ctx context.Context, fact scope.Scope, after uint64) (events.Event[events.EffectCommitted], error) {
	ctx, leave, err := l.request(ctx)
	if err != nil {
		return events.Event[events.EffectCommitted]{}, err
	}
	defer leave()
	at := place{fact.Project, fact.Key(), 0}
	err = l.file.Read.QueryRowContext(ctx, `SELECT revision FROM effects
		WHERE project = ? AND scope = ? AND revision > ? ORDER BY revision LIMIT 1`, at.project, at.scope, after).Scan(&at.revision)
	if err != nil {
		return events.Event[events.EffectCommitted]{}, err
	}
	return l.effect(ctx, at)
}

// Heads implements [audit.Heads]. It leaps from scope to scope: to group the
// table would read every effect.
func (l *Log) Heads(ctx context.Context, yield func(audit.Head) error) error {
	at := place{}
	for {
		head, err := l.head(ctx, &at)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("audit sqlite: read heads: %w", err)
		}
		if err := yield(head); err != nil {
			return err
		}
	}
}

// head is that of the scope behind at, which it moves there.
func (l *Log) head(ctx context.Context, at *place) (head audit.Head, err error) {
	ctx, leave, err := l.request(ctx)
	if err != nil {
		return head, err
	}
	defer leave()
	err = l.file.Read.QueryRowContext(ctx, `SELECT project, scope FROM effects
		WHERE (project, scope) > (?, ?) ORDER BY project, scope LIMIT 1`, at.project, at.scope).Scan(&at.project, &at.scope)
	if err != nil {
		return head, err
	}
	err = l.file.Read.QueryRowContext(ctx, `SELECT revision, sequence FROM effects
		WHERE project = ? AND scope = ? ORDER BY revision DESC LIMIT 1`, at.project, at.scope).Scan(&at.revision, &head.Sequence)
	if err != nil {
		return head, err
	}
	head.Scope, err = scope.ParseKey(at.project, at.scope)
	return head, err
}

// LastSequence implements [audit.Log].
func (l *Log) LastSequence(ctx context.Context) (uint64, error) {
	ctx, leave, err := l.request(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	var last uint64
	if err := l.file.Read.QueryRowContext(ctx, "SELECT coalesce(max(sequence), 0) FROM effects").Scan(&last); err != nil {
		return 0, fmt.Errorf("audit sqlite: read last sequence: %w", err)
	}
	return last, nil
}
