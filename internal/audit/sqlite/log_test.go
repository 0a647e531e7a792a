package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"palimpsest/internal/audit"
	"palimpsest/internal/audit/audittest"
	"palimpsest/internal/audit/sqlite"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, path string) *sqlite.Log {
	t.Helper()
	log, err := sqlite.Open(context.Background(), sqlite.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func TestLog(t *testing.T) {
	t.Parallel()
	open := func(t *testing.T) audit.Log {
		t.Helper()
		return open(t, filepath.Join(t.TempDir(), "odd ?name#", "audit.db"))
	}
	audittest.RunLog(t, open)
	t.Run("reports", func(t *testing.T) {
		t.Parallel()
		audittest.RunReports(t, open)
	})
	t.Run("other histories are refused", func(t *testing.T) {
		t.Parallel()
		audittest.RunLogHistory(t, open)
	})
}

// A log of the first schema, which counted nothing, has the same reports.
func TestReportsOfTheFirstSchema(t *testing.T) {
	t.Parallel()
	audittest.RunReports(t, func(t *testing.T) audit.Log {
		t.Helper()
		path := filepath.Join(t.TempDir(), "audit.db")
		return firstSchema{open(t, path), path}
	})
}

type firstSchema struct {
	*sqlite.Log
	path string
}

func (l firstSchema) Write(ctx context.Context, effects []events.Event[events.EffectCommitted]) error {
	if err := l.Log.Write(ctx, effects); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", l.path)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, "DELETE FROM tallies; UPDATE record_rows SET value = NULL, known_ms = NULL, model = NULL")
	return err
}

func TestReopen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	s := scope.Scope{Project: "p", User: "u"}
	for range 2 {
		log := open(t, path)
		if err := log.Write(t.Context(), audittest.LogStory(s, 3, 1)); err != nil {
			t.Fatal(err)
		}
		got, err := log.Records(t.Context(), scope.Exactly(s), audit.Query{Limit: 100})
		if err != nil || len(got) != 6 {
			t.Fatalf("%d records, %v", len(got), err)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	log := open(t, path)
	if _, err := sqlite.Open(t.Context(), sqlite.Config{Path: path}); !errors.Is(err, audit.ErrLocked) {
		t.Errorf("a second log: %v, want ErrLocked", err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "PRAGMA user_version = 99"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Open(t.Context(), sqlite.Config{Path: path}); !errors.Is(err, audit.ErrNewer) {
		t.Errorf("a newer schema: %v, want ErrNewer", err)
	}
	if _, err := sqlite.Open(t.Context(), sqlite.Config{}); err == nil {
		t.Error("no path passes")
	}
}

func TestPingNoticesMissingFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	log := open(t, path)
	defer log.Close()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	select {
	case <-log.Gone():
	case <-time.After(10 * time.Second):
		t.Fatal("not noticed")
	}
	if err := log.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("ping: %v", err)
	}
	if err := log.Write(t.Context(), audittest.LogStory(scope.Scope{Project: "p", User: "u"}, 1, 1)); err == nil {
		t.Error("a write to nowhere passes")
	}
}

func TestFullSync(t *testing.T) {
	t.Parallel()
	log, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "audit.db"), Full: true})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if err := log.Write(t.Context(), audittest.LogStory(scope.Scope{Project: "p", User: "u"}, 1, 1)); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkWrite(b *testing.B) {
	log := open(b, filepath.Join(b.TempDir(), "audit.db"))
	defer log.Close()
	n := 0
	for b.Loop() {
		n++
		if err := log.Write(b.Context(), audittest.LogStory(scope.Scope{Project: "p", User: fmt.Sprint(n)}, 1000, 1)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n*1000)/b.Elapsed().Seconds(), "effects/s")
}
