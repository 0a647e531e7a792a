package clickhouse

import (
	"context"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"palimpsest/internal/audit"
	"palimpsest/internal/audit/audittest"
	"palimpsest/internal/testengine/clickhouseserver"
	"palimpsest/pkg/events"
)

// Rows of the first schema have what reports count by the defaults of its
// columns.
func TestReportsOfTheFirstSchema(t *testing.T) {
	t.Parallel()
	audittest.RunReports(t, func(t *testing.T) audit.Log {
		t.Helper()
		dsn := clickhouseserver.DSN(t)
		conn := connect(t, dsn)
		log, err := Open(t.Context(), Config{DSN: dsn})
		if err != nil {
			t.Fatal(err)
		}
		return firstSchema{log, conn}
	})
}

type firstSchema struct {
	*Log
	conn driver.Conn
}

func (l firstSchema) Write(ctx context.Context, effects []events.Event[events.EffectCommitted]) error {
	if err := l.Log.Write(ctx, effects); err != nil {
		return err
	}
	script, err := migrations.ReadFile("migrations/002_reports.sql")
	if err != nil {
		return err
	}
	statements := []string{
		"ALTER TABLE audit DROP COLUMN value, DROP COLUMN llm_calls",
		"ALTER TABLE effects DROP COLUMN user_id, DROP COLUMN session_id, DROP COLUMN agent_id, DROP COLUMN extractor, DROP COLUMN adds",
	}
	for _, statement := range append(statements, strings.Split(strings.TrimSpace(string(script)), ";\n")...) {
		if err := l.place.exec(ctx, l.conn, strings.TrimSuffix(statement, ";")); err != nil {
			return err
		}
	}
	return nil
}
