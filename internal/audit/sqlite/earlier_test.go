package sqlite

import (
	"database/sql"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/audit"
	"palimpsest/internal/sqlitefile"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// TestRecordsOfTheSecondSchema: a log from before places has the same records
// after it was migrated, and takes further ones of the same scope.
func TestRecordsOfTheSecondSchema(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	first, second := effectOf(t, 1), effectOf(t, 2)
	writeEarlier(t, path, first)
	l, err := Open(t.Context(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.Write(t.Context(), []events.Event[events.EffectCommitted]{first, second}); err != nil {
		t.Fatal(err)
	}
	records, err := l.Records(t.Context(), scope.Selector{Project: "p", User: new("ana")}, audit.Query{Limit: 10})
	if err != nil || len(records) != 2 || records[0].Revision != 1 || records[1].Revision != 2 {
		t.Errorf("records %+v, %v", records, err)
	}
	if other, err := l.Records(t.Context(), scope.Selector{Project: "p", User: new("bob")}, audit.Query{Limit: 10}); err != nil || len(other) != 0 {
		t.Errorf("another user's records %+v, %v", other, err)
	}
	if history, err := l.History(t.Context(), "p", "f1"); err != nil || len(history) != 2 {
		t.Errorf("history %+v, %v", history, err)
	}
}

// TestSafetyOfAnEarlierSchema: a report counts what a log from before reasons has.
func TestSafetyOfAnEarlierSchema(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	e := effectOf(t, 1)
	noop, err := events.NewNoop(events.Provenance{
		ID: "d", SourceEpisodeIDs: []string{"e1"}, PromotionTS: e.Time, RuleID: "unsafe", Confidence: 1, Reason: events.ReasonSafety, DecidedBy: "rules@v1",
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	e.Data.Applied = []events.Applied{{Delta: noop}}
	writeEarlier(t, path, e)
	l, err := Open(t.Context(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range 2 { // it is counted once
		got, err := l.Safety(t.Context(), audit.ReportQuery{Selector: scope.Selector{Project: "p"}, Limit: 10})
		want := []audit.Safety{{Reason: events.ReasonSafety, Rule: "turn", RuleID: "unsafe", Drops: 1}}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
}

// TestMeasureReadsNoMoreThanIsMissing: each look for effects that are not counted yet
// ends with the first ones that it finds, and the looks find all of them.
func TestMeasureReadsNoMoreThanIsMissing(t *testing.T) {
	t.Parallel()
	l, err := Open(t.Context(), Config{Path: filepath.Join(t.TempDir(), "audit.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	noop, err := events.NewNoop(events.Provenance{
		ID: "d", SourceEpisodeIDs: []string{"e1"}, PromotionTS: time.Unix(1, 0), RuleID: "unsafe", Confidence: 1, Reason: events.ReasonSafety, DecidedBy: "rules@v1",
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	list := make([]events.Event[events.EffectCommitted], 501)
	for i := range list {
		list[i] = effectOf(t, uint64(i+1))
		list[i].Data.Applied = []events.Applied{{Delta: noop}, {Delta: noop}}
	}
	if err := l.Write(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	tx, err := l.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), "UPDATE record_rows SET reason = NULL, rule_id = NULL"); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	got, err := l.Safety(t.Context(), audit.ReportQuery{Selector: scope.Selector{Project: "p"}, Limit: 10})
	want := []audit.Safety{{Reason: events.ReasonSafety, Rule: "turn", RuleID: "unsafe", Drops: 1002}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	rows, err := l.file.Read.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+unmeasured)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(detail, "TEMP B-TREE") || strings.Contains(detail, "MERGE") {
			t.Errorf("a look reads everything first: %s", detail)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

func effectOf(t *testing.T, revision uint64) events.Event[events.EffectCommitted] {
	t.Helper()
	at := time.Date(2026, 1, 2, 3, 4, int(revision), 0, time.UTC)
	noop, err := events.NewNoop(events.Provenance{
		ID: "d", SourceEpisodeIDs: []string{"e1"}, PromotionTS: at, RuleID: "r", Confidence: 1, Reason: events.ReasonDuplicate, DecidedBy: "rules@v1",
	}, "f1")
	if err != nil {
		t.Fatal(err)
	}
	var e events.Event[events.EffectCommitted]
	e.ID, e.Source, e.Sequence, e.Time = events.HashID("effect", at.String()), "test", revision, at
	e.Data = events.EffectCommitted{
		Header: events.Header{Scope: scope.Scope{Project: "p", User: "ana"}}, Revision: revision, Rule: "turn", CommittedAt: at,
		Applied: []events.Applied{{Delta: noop, FactID: "f1"}},
	}
	return e
}

// writeEarlier makes a log of the second schema with one effect.
func writeEarlier(t *testing.T, path string, e events.Event[events.EffectCommitted]) {
	t.Helper()
	earlier := fstest.MapFS{}
	for _, name := range []string{"migrations/0001_effects.sql", "migrations/0002_reports.sql"} {
		script, err := fs.ReadFile(migrations, name)
		if err != nil {
			t.Fatal(err)
		}
		earlier[name] = &fstest.MapFile{Data: script}
	}
	db, err := sql.Open("sqlite", sqlitefile.DSN(path, Config{}.file(), true))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := sqlitefile.Migrate(t.Context(), db, earlier, audit.ErrNewer); err != nil {
		t.Fatal(err)
	}
	p, err := newPacker()
	if err != nil {
		t.Fatal(err)
	}
	blob, err := p.pack(e.Data)
	if err != nil {
		t.Fatal(err)
	}
	s, r := e.Data.Scope, audit.Records(e)[0]
	if _, err := db.ExecContext(t.Context(), insertEffect, s.Project, s.Key(), e.Data.Revision, e.Sequence, e.ID, e.Source,
		e.Time.UnixMicro(), e.CorrelationID, e.CausationID, blob); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `INSERT INTO records (project, scope, revision, idx, user_id, agent_id, session_id,
		sequence, applied_at, kind, rule, correlation, fact_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		s.Project, s.Key(), r.Revision, r.Index, s.User, s.Agent, s.Session, r.Sequence, r.AppliedAt.UnixMicro(), r.Kind, r.Rule,
		r.CorrelationID, r.FactID); err != nil {
		t.Fatal(err)
	}
}

// TestReadsUseIndexes: queries of the view use the indexes of its table.
func TestReadsUseIndexes(t *testing.T) {
	t.Parallel()
	l, err := Open(t.Context(), Config{Path: filepath.Join(t.TempDir(), "audit.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for query, index := range map[string]string{
		`SELECT scope FROM records WHERE project = 'p' AND fact_id = 'f' AND fact_id <> '' ORDER BY applied_at, scope, revision, idx`: "record_rows_by_fact (project=? AND fact_id=?)",
		`SELECT scope FROM records WHERE project = 'p' AND user_id = 'u' AND sequence > 5 ORDER BY sequence, idx LIMIT 10`:            "record_rows_by_sequence (project=? AND sequence>?)",
		`SELECT scope FROM records WHERE project = 'p' AND correlation = 'c' ORDER BY sequence, idx LIMIT 10`:                         "record_rows_by_correlation (project=? AND correlation=?)",
		`SELECT rule, count(*) FROM records WHERE project = 'p' AND applied_at >= 5 GROUP BY rule`:                                    "record_rows_by_time (project=? AND applied_at>?)",
	} {
		var id, parent, unused int
		var detail string
		if err := l.file.Read.QueryRowContext(t.Context(), "EXPLAIN QUERY PLAN "+query).Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(detail, index) {
			t.Errorf("%s\n  %s", query, detail)
		}
	}
}
