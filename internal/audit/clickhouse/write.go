package clickhouse

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"golang.org/x/sync/errgroup"

	"palimpsest/internal/audit"
	"palimpsest/pkg/events"
)

// Write implements [audit.Writer] with one insert for the records and one for
// the effects, in this order: [Log.LastSequence], which is read off the effects,
// must not run ahead of the records.
func (l *Log) Write(ctx context.Context, effects []events.Event[events.EffectCommitted]) error {
	if err := l.enter(); err != nil {
		return err
	}
	defer l.leave()
	if len(effects) == 0 {
		return nil
	}
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{
		// The server drops a batch that it has just seen. This only saves work: a
		// redelivered batch is mostly cut differently.
		"insert_deduplication_token": token(effects),
		// A batch that reached the table but not the view reaches it the next time.
		"deduplicate_blocks_in_dependent_materialized_views": 1,
		"async_insert": 0,
		// Effects of many months may come together, when memory is imported.
		"max_partitions_per_insert_block": 0,
	}))
	// Effects become JSON while the server looks what it has of them, and takes
	// the records.
	var whole block
	var making, before errgroup.Group
	making.Go(func() (err error) {
		whole, err = effectBlock(effects)
		return err
	})
	var records block
	before.Go(func() (err error) {
		records, err = recordBlock(effects)
		return err
	})
	before.Go(func() error { return l.refuseOther(ctx, effects) })
	err := before.Wait()
	if err == nil && records.rows > 0 {
		if err = plain(l.insert(ctx, "audit", records)); err != nil {
			err = fmt.Errorf("write records: %w", err)
		}
	}
	if err := cmp.Or(err, making.Wait()); err != nil {
		return fmt.Errorf("audit clickhouse: %w", err)
	}
	if err := l.insert(ctx, "effects", whole); err != nil {
		return fmt.Errorf("audit clickhouse: write effects: %w", plain(err))
	}
	return nil
}

// token names a batch by its content.
func token(effects []events.Event[events.EffectCommitted]) string {
	parts := make([]string, 0, 2*len(effects))
	for _, e := range effects {
		parts = append(parts, strconv.FormatUint(e.Sequence, 10), e.ID)
	}
	return events.HashID(parts...)
}

func (l *Log) insert(ctx context.Context, table string, b block) (err error) {
	names := make([]string, len(b.columns))
	for i, c := range b.columns {
		names[i] = c.name
	}
	batch, err := l.conn.PrepareBatch(ctx, "INSERT INTO "+table+" ("+strings.Join(names, ", ")+")")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, batch.Close()) }()
	for i, c := range b.columns {
		if err := batch.Column(i).Append(c.values); err != nil {
			return fmt.Errorf("column %s: %w", c.name, err)
		}
	}
	return batch.Send()
}

// block is rows by column, as the server takes them; filling rows costs twice
// as much.
type block struct {
	rows    int
	columns []column
}

type column struct {
	name   string
	values any // a slice with an element for each row
}

// columnOf makes a column of what value takes from each row.
func columnOf[Row, Value any](name string, rows []Row, value func(*Row) Value) column {
	values := make([]Value, len(rows))
	for i := range rows {
		values[i] = value(&rows[i])
	}
	return column{name, values}
}

func effectBlock(effects []events.Event[events.EffectCommitted]) (block, error) {
	type row = events.Event[events.EffectCommitted]
	blobs := make([][]byte, len(effects))
	for i, e := range effects {
		raw, err := events.MarshalEffect(e.Data)
		if err != nil {
			return block{}, fmt.Errorf("encode effect %d of %s: %w", e.Data.Revision, e.Data.Scope, err)
		}
		blobs[i] = raw
	}
	return block{len(effects), []column{
		columnOf("project", effects, func(e *row) string { return e.Data.Scope.Project }),
		columnOf("scope", effects, func(e *row) string { return e.Data.Scope.Key() }),
		columnOf("revision", effects, func(e *row) uint64 { return e.Data.Revision }),
		columnOf("sequence", effects, func(e *row) uint64 { return e.Sequence }),
		columnOf("id", effects, func(e *row) string { return e.ID }),
		columnOf("source", effects, func(e *row) string { return e.Source }),
		columnOf("at", effects, func(e *row) instant { return bounded(e.Time) }),
		columnOf("correlation_id", effects, func(e *row) string { return e.CorrelationID }),
		columnOf("causation_id", effects, func(e *row) string { return e.CausationID }),
		columnOf("rule", effects, func(e *row) string { return e.Data.Rule }),
		columnOf("committed_at", effects, func(e *row) instant { return bounded(e.Data.CommittedAt) }),
		columnOf("episodes", effects, func(e *row) uint32 { return uint32(e.Data.Tally.Episodes) }),
		columnOf("candidates", effects, func(e *row) uint32 { return uint32(e.Data.Tally.Candidates) }),
		columnOf("decided", effects, func(e *row) uint32 { return uint32(e.Data.Tally.Decided) }),
		columnOf("held", effects, func(e *row) uint32 { return uint32(e.Data.Tally.Held) }),
		columnOf("dropped", effects, func(e *row) uint32 { return uint32(e.Data.Tally.Dropped) }),
		columnOf("skipped", effects, func(e *row) uint32 { return uint32(e.Data.Tally.Skipped) }),
		columnOf("user_id", effects, func(e *row) string { return e.Data.Scope.User }),
		columnOf("agent_id", effects, func(e *row) string { return e.Data.Scope.Agent }),
		columnOf("session_id", effects, func(e *row) string { return e.Data.Scope.Session }),
		columnOf("extractor", effects, func(e *row) string { return e.Data.Extractor }),
		columnOf("adds", effects, func(e *row) uint32 { return uint32(audit.Adds(e.Data)) }),
		columnOf("spent_model", effects, spent(func(s events.Spent) string { return s.Model })),
		columnOf("spent_calls", effects, spent(func(s events.Spent) uint64 { return uint64(s.Calls) })),
		columnOf("spent_input", effects, spent(func(s events.Spent) uint64 { return uint64(s.InputTokens) })),
		columnOf("spent_output", effects, spent(func(s events.Spent) uint64 { return uint64(s.OutputTokens) })),
		columnOf("spent_dollars", effects, spent(func(s events.Spent) float64 { return s.Dollars })),
		{"effect", blobs},
	}}, nil
}

// spent takes a value from what each model charged for an effect.
func spent[Value any](of func(events.Spent) Value) func(*events.Event[events.EffectCommitted]) []Value {
	return func(e *events.Event[events.EffectCommitted]) []Value {
		out := make([]Value, len(e.Data.Spent))
		for i, s := range e.Data.Spent {
			out[i] = of(s)
		}
		return out
	}
}

func recordBlock(effects []events.Event[events.EffectCommitted]) (block, error) {
	var records []audit.Record
	for _, e := range effects {
		records = append(records, audit.Records(e)...)
	}
	versions := [2][][]byte{make([][]byte, len(records)), make([][]byte, len(records))}
	for i, r := range records {
		for side, f := range []*events.Fact{r.Before, r.After} {
			if f == nil {
				continue
			}
			raw, err := json.Marshal(f)
			if err != nil {
				return block{}, fmt.Errorf("encode fact %s: %w", f.ID, err)
			}
			versions[side][i] = raw
		}
	}
	type row = audit.Record
	return block{len(records), []column{
		columnOf("project", records, func(r *row) string { return r.Scope.Project }),
		columnOf("scope", records, func(r *row) string { return r.Scope.Key() }),
		columnOf("revision", records, func(r *row) uint64 { return r.Revision }),
		columnOf("idx", records, func(r *row) uint32 { return uint32(r.Index) }),
		columnOf("user_id", records, func(r *row) string { return r.Scope.User }),
		columnOf("agent_id", records, func(r *row) string { return r.Scope.Agent }),
		columnOf("session_id", records, func(r *row) string { return r.Scope.Session }),
		columnOf("sequence", records, func(r *row) uint64 { return r.Sequence }),
		columnOf("delta_id", records, func(r *row) string { return r.DeltaID }),
		columnOf("kind", records, func(r *row) string { return string(r.Kind) }),
		columnOf("reason", records, func(r *row) string { return string(r.Reason) }),
		columnOf("rule", records, func(r *row) string { return r.Rule }),
		columnOf("rule_id", records, func(r *row) string { return r.RuleID }),
		columnOf("decided_by", records, func(r *row) string { return r.DecidedBy }),
		columnOf("llm_model", records, func(r *row) string { return r.Model() }),
		columnOf("confidence", records, func(r *row) float64 { return r.Confidence }),
		columnOf("fact_id", records, func(r *row) string { return r.FactID }),
		{"before", versions[0]},
		{"after", versions[1]},
		columnOf("sources", records, func(r *row) []string { return r.Sources }),
		columnOf("request_id", records, func(r *row) string { return r.RequestID }),
		columnOf("candidate_id", records, func(r *row) string { return r.CandidateID }),
		columnOf("correlation_id", records, func(r *row) string { return r.CorrelationID }),
		columnOf("value", records, func(r *row) string { return r.Value() }),
		columnOf("event_time", records, func(r *row) *instant { return known(r.EventTime) }),
		columnOf("decided_at", records, func(r *row) instant { return bounded(r.DecidedAt) }),
		columnOf("applied_at", records, func(r *row) instant { return bounded(r.AppliedAt) }),
	}}, nil
}
