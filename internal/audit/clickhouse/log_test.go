package clickhouse_test

import (
	"testing"

	"go.uber.org/goleak"

	"palimpsest/internal/audit"
	"palimpsest/internal/audit/audittest"
	"palimpsest/internal/audit/clickhouse"
	"palimpsest/internal/testengine/clickhouseserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(clickhouseserver.Tests{M: m}) }

func open(t testing.TB, dsn string) *clickhouse.Log {
	t.Helper()
	log, err := clickhouse.Open(t.Context(), clickhouse.Config{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func TestLog(t *testing.T) {
	t.Parallel()
	clickhouseserver.Each(t, func(t *testing.T, dsn func(testing.TB) string) {
		open := func(t *testing.T) audit.Log {
			t.Helper()
			return open(t, dsn(t))
		}
		audittest.RunLog(t, open)
		t.Run("other histories are refused", func(t *testing.T) {
			t.Parallel()
			audittest.RunLogHistory(t, open)
		})
		t.Run("reports", func(t *testing.T) {
			t.Parallel()
			audittest.RunReports(t, open)
		})
	})
}
