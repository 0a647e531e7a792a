package clickhouse

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"palimpsest/internal/audit"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

const (
	// effectPage and headPage are how much one query returns: the caller may take
	// as long as it likes over each, and no query is open meanwhile.
	effectPage = 32
	headPage   = 1000
)

// key is the key of a row of audit. Rows of one key are equal, so that LIMIT 1 BY
// counts an effect that was delivered twice once.
const key = "project, scope, revision, idx"

// recordColumns are in the order in which [scanRecord] takes them.
const recordColumns = `project, scope, revision, idx, sequence, delta_id, kind, reason, rule, rule_id, decided_by,
	confidence, fact_id, before, after, sources, request_id, candidate_id, correlation_id, decided_at, applied_at`

// History implements [audit.Log].
func (l *Log) History(ctx context.Context, project, factID string) ([]audit.Record, error) {
	if err := l.enter(); err != nil {
		return nil, err
	}
	defer l.leave()
	if factID == "" {
		return nil, nil // a record without a fact is in no history
	}
	return l.records(ctx, "SELECT "+recordColumns+` FROM audit
		WHERE project = {project:String} AND fact_id = {fact:String}
		ORDER BY applied_at, scope, revision, idx LIMIT 1 BY `+key,
		clickhouse.Named("project", project), clickhouse.Named("fact", factID))
}

// Records implements [audit.Log]. The keys are found first, so that only the
// rows that are returned are read whole.
func (l *Log) Records(ctx context.Context, sel scope.Selector, q audit.Query) ([]audit.Record, error) {
	if err := l.enter(); err != nil {
		return nil, err
	}
	defer l.leave()
	if q.Limit < 1 || q.Limit > audit.MaxRecords {
		return nil, fmt.Errorf("limit %d is outside 1 to %d: %w", q.Limit, audit.MaxRecords, audit.ErrQuery)
	}
	where, args := conditions(sel, q, appliedAt)
	return l.records(ctx, "SELECT "+recordColumns+` FROM audit
		WHERE project = {project:String} AND (`+key+") IN (SELECT "+key+` FROM audit
			WHERE `+where+` ORDER BY sequence, idx LIMIT 1 BY `+key+` LIMIT {limit:UInt64})
		ORDER BY sequence, idx LIMIT 1 BY `+key, append(args, clickhouse.Named("limit", q.Limit))...)
}

// conditions returns the conditions of a query and their arguments; applied is the
// column of the time.
func conditions(sel scope.Selector, q audit.Query, applied string) (where string, args []any) {
	var all []string
	and := func(condition, name string, value any) {
		all = append(all, condition)
		if value != nil {
			args = append(args, clickhouse.Named(name, value))
		}
	}
	and("project = {project:String}", "project", sel.Project)
	if sel.User != nil {
		and("user_id = {user:String}", "user", *sel.User)
	}
	if sel.Agent != nil {
		and("agent_id = {agent:String}", "agent", *sel.Agent)
	}
	if sel.Session != nil {
		and("session_id = {session:String}", "session", *sel.Session)
	}
	if q.AfterSequence > 0 {
		and("sequence > {after:UInt64}", "after", q.AfterSequence)
	}
	// A plain argument would lose what is below a second.
	if !q.From.IsZero() {
		and(applied+" >= {from:DateTime64(9, 'UTC')}", "", nil)
		args = append(args, clickhouse.DateNamed("from", bounded(q.From), clickhouse.NanoSeconds))
	}
	if !q.To.IsZero() {
		and(applied+" < {to:DateTime64(9, 'UTC')}", "", nil)
		args = append(args, clickhouse.DateNamed("to", bounded(q.To), clickhouse.NanoSeconds))
	}
	if q.Rule != "" {
		and("rule = {rule:String}", "rule", q.Rule)
	}
	if q.CorrelationID != "" {
		and("correlation_id = {correlation:String}", "correlation", q.CorrelationID)
	}
	if len(q.Kinds) > 0 {
		kinds := make([]string, len(q.Kinds))
		for i, k := range q.Kinds {
			kinds[i] = string(k)
		}
		and("kind IN {kinds:Array(String)}", "kinds", kinds)
	}
	return strings.Join(all, " AND "), args
}

// records runs a query for recordColumns.
func (l *Log) records(ctx context.Context, query string, args ...any) ([]audit.Record, error) {
	records, err := collect(ctx, l.conn, scanRecord, query, args...)
	if err != nil {
		return nil, fmt.Errorf("audit clickhouse: find records: %w", plain(err))
	}
	return records, nil
}

// collect reads all rows of a query.
func collect[T any](ctx context.Context, conn asker, scan func(driver.Rows) (T, error), query string, args ...any) (all []T, err error) {
	rows, err := conn.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}

func scanRecord(rows driver.Rows) (r audit.Record, err error) {
	var project, key, kind, reason, before, after string
	var index uint32
	if err := rows.Scan(&project, &key, &r.Revision, &index, &r.Sequence, &r.DeltaID, &kind, &reason, &r.Rule, &r.RuleID, &r.DecidedBy,
		&r.Confidence, &r.FactID, &before, &after, &r.Sources, &r.RequestID, &r.CandidateID, &r.CorrelationID, &r.DecidedAt, &r.AppliedAt); err != nil {
		return r, err
	}
	r.Index, r.Kind, r.Reason = int(index), events.DeltaKind(kind), events.Reason(reason)
	if r.Scope, err = scope.ParseKey(project, key); err != nil {
		return r, err
	}
	if r.Before, err = decode[events.Fact](before); err != nil {
		return r, err
	}
	if r.After, err = decode[events.Fact](after); err != nil {
		return r, err
	}
	// As in audit.Records: the column is not exact.
	switch {
	case r.After != nil:
		r.EventTime = r.After.EventTime
	case r.Before != nil:
		r.EventTime = r.Before.EventTime
	}
	return r, nil
}

// Effects implements [audit.EffectArchive]; it reads a page at a time.
func (l *Log) Effects(ctx context.Context, fact scope.Scope, after uint64) iter.Seq2[events.Event[events.EffectCommitted], error] {
	return func(yield func(events.Event[events.EffectCommitted], error) bool) {
		for {
			page, err := l.effects(ctx, fact, after)
			if err != nil {
				yield(events.Event[events.EffectCommitted]{}, fmt.Errorf("audit clickhouse: read effects of %s: %w", fact, plain(err)))
				return
			}
			for _, e := range page {
				if !yield(e, nil) {
					return
				}
				after = e.Data.Revision
			}
			if len(page) < effectPage {
				return
			}
		}
	}
}

func (l *Log) effects(ctx context.Context, fact scope.Scope, after uint64) ([]events.Event[events.EffectCommitted], error) {
	if err := l.enter(); err != nil {
		return nil, err
	}
	defer l.leave()
	return collect(ctx, l.conn, scanEffect, `SELECT sequence, id, source, at, correlation_id, causation_id, effect FROM effects
		WHERE project = {project:String} AND scope = {scope:String} AND revision > {after:UInt64}
		ORDER BY revision LIMIT 1 BY revision LIMIT {limit:UInt64}`,
		clickhouse.Named("project", fact.Project), clickhouse.Named("scope", fact.Key()),
		clickhouse.Named("after", after), clickhouse.Named("limit", effectPage))
}

func scanEffect(rows driver.Rows) (e events.Event[events.EffectCommitted], err error) {
	var blob string
	if err := rows.Scan(&e.Sequence, &e.ID, &e.Source, &e.Time, &e.CorrelationID, &e.CausationID, &blob); err != nil {
		return e, err
	}
	data, err := decode[events.EffectCommitted](blob)
	if err != nil || data == nil {
		return e, fmt.Errorf("effect at %d: %w", e.Sequence, err)
	}
	e.Data, e.Kind, e.Scope = *data, data.Kind(), data.Scope
	return e, nil
}

// at is a fact scope as the effects are ordered by it.
type at struct {
	project, scope string
	sequence       uint64 // of its newest effect
}

// Heads implements [audit.Heads]; it reads a page of scopes at a time.
func (l *Log) Heads(ctx context.Context, yield func(audit.Head) error) error {
	var last at
	for {
		page, err := l.heads(ctx, last)
		if err != nil {
			return fmt.Errorf("audit clickhouse: read heads: %w", plain(err))
		}
		for _, last = range page {
			s, err := scope.ParseKey(last.project, last.scope)
			if err != nil {
				return fmt.Errorf("audit clickhouse: read heads: %w", err)
			}
			if err := yield(audit.Head{Scope: s, Sequence: last.sequence}); err != nil {
				return err
			}
		}
		if len(page) < headPage {
			return nil
		}
	}
}

func (l *Log) heads(ctx context.Context, after at) ([]at, error) {
	if err := l.enter(); err != nil {
		return nil, err
	}
	defer l.leave()
	// Said in this way the server finds the place by its index; tuples it compares
	// row by row.
	return collect(ctx, l.conn, scanHead, `SELECT project, scope, argMax(sequence, revision) FROM effects
		WHERE project > {project:String} OR project = {project:String} AND scope > {scope:String}
		GROUP BY project, scope ORDER BY project, scope LIMIT {limit:UInt64}`,
		clickhouse.Named("project", after.project), clickhouse.Named("scope", after.scope), clickhouse.Named("limit", headPage))
}

func scanHead(rows driver.Rows) (h at, err error) {
	err = rows.Scan(&h.project, &h.scope, &h.sequence)
	return h, err
}

// LastSequence implements [audit.Log].
func (l *Log) LastSequence(ctx context.Context) (uint64, error) {
	if err := l.enter(); err != nil {
		return 0, err
	}
	defer l.leave()
	var last uint64
	if err := l.conn.QueryRow(ctx, "SELECT max(sequence) FROM effects").Scan(&last); err != nil {
		return 0, fmt.Errorf("audit clickhouse: read last sequence: %w", plain(err))
	}
	return last, nil
}
