package clickhouse_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"palimpsest/internal/audit"
	"palimpsest/internal/audit/audittest"
	"palimpsest/internal/testengine/clickhouseserver"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// BenchmarkWrite compares Write with bare batches of the rows that it writes, in
// turns, each into a database of its own. The rows of the bare batches are made
// beforehand, JSON included, which flatters them.
func BenchmarkWrite(b *testing.B) {
	for _, n := range []int{100, 400, 1000, 2000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { compareWrites(b, n) })
	}
}

func compareWrites(b *testing.B, n int) {
	log, bareDSN := open(b, clickhouseserver.DSN(b)), clickhouseserver.DSN(b)
	defer log.Close()
	if err := open(b, bareDSN).Close(); err != nil { // makes the tables
		b.Fatal(err)
	}
	bare, err := clickhouseserver.Connect(bareDSN + "?compress=lz4")
	if err != nil {
		b.Fatal(err)
	}
	defer bare.Close()
	var ours, theirs time.Duration
	rounds := 0
	for b.Loop() {
		rounds++
		story := audittest.LogStory(scope.Scope{Project: "p", User: fmt.Sprint(rounds)}, n, 1)
		ours += timed(b, func() error { return log.Write(b.Context(), story) })
		records, effects := recordRows(b, story), effectRows(b, story)
		theirs += timed(b, func() error {
			if err := insertRows(b, bare, "audit ("+recordNames+")", records); err != nil {
				return err
			}
			return insertRows(b, bare, "effects ("+effectNames+")", effects)
		})
	}
	rows := float64(rounds * n * 3)
	b.ReportMetric(rows/ours.Seconds(), "rows/s")
	b.ReportMetric(rows/theirs.Seconds(), "bare-rows/s")
	b.ReportMetric(theirs.Seconds()/ours.Seconds(), "ratio")
	b.ReportMetric(0, "ns/op") // it holds both
}

func timed(b *testing.B, run func() error) time.Duration {
	b.Helper()
	start := time.Now()
	if err := run(); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

func insertRows(b *testing.B, conn driver.Conn, table string, rows [][]any) error {
	batch, err := conn.PrepareBatch(b.Context(), "INSERT INTO "+table)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if err := batch.Append(row...); err != nil {
			return err
		}
	}
	return batch.Send()
}

const (
	recordNames = `project, scope, revision, idx, user_id, agent_id, session_id, sequence, delta_id, kind, reason, rule, rule_id,
		decided_by, confidence, fact_id, before, after, sources, request_id, candidate_id, correlation_id, event_time, decided_at, applied_at`
	effectNames = `project, scope, revision, sequence, id, source, at, correlation_id, causation_id, rule, committed_at,
		episodes, candidates, decided, held, dropped, skipped, effect`
)

func recordRows(b *testing.B, story []events.Event[events.EffectCommitted]) [][]any {
	var rows [][]any
	for _, e := range story {
		for _, r := range audit.Records(e) {
			var at *time.Time
			if !r.EventTime.IsZero() {
				at = &r.EventTime
			}
			rows = append(rows, []any{
				r.Scope.Project, r.Scope.Key(), r.Revision, uint32(r.Index), r.Scope.User, r.Scope.Agent, r.Scope.Session, r.Sequence,
				r.DeltaID, string(r.Kind), string(r.Reason), r.Rule, r.RuleID, r.DecidedBy, r.Confidence, r.FactID,
				text(b, r.Before), text(b, r.After), r.Sources, r.RequestID, r.CandidateID, r.CorrelationID, at, r.DecidedAt, r.AppliedAt,
			})
		}
	}
	return rows
}

func effectRows(b *testing.B, story []events.Event[events.EffectCommitted]) [][]any {
	rows := make([][]any, 0, len(story))
	for _, e := range story {
		rows = append(rows, []any{
			e.Data.Scope.Project, e.Data.Scope.Key(), e.Data.Revision, e.Sequence, e.ID, e.Source, e.Time, e.CorrelationID, e.CausationID,
			e.Data.Rule, e.Data.CommittedAt, uint32(0), uint32(0), uint32(0), uint32(0), uint32(0), uint32(0), text(b, e.Data),
		})
	}
	return rows
}

// text is JSON, or nothing for a nil fact.
func text(b *testing.B, v any) string {
	if f, ok := v.(*events.Fact); ok && f == nil {
		return ""
	}
	raw, err := json.Marshal(v)
	if err != nil {
		b.Fatal(err)
	}
	return string(raw)
}
