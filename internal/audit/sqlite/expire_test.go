package sqlite_test

import (
	"path/filepath"
	"testing"
	"time"

	"palimpsest/internal/audit"
	"palimpsest/internal/audit/audittest"
	"palimpsest/internal/audit/sqlite"
)

func TestRetention(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	audittest.RunRetention(t, now, func(t *testing.T, keep audit.Retention) audit.Log {
		t.Helper()
		log, err := sqlite.Open(t.Context(), sqlite.Config{
			Path: filepath.Join(t.TempDir(), "audit.db"), Retention: keep, Now: func() time.Time { return now },
		})
		if err != nil {
			t.Fatal(err)
		}
		return log
	}, func(t *testing.T, log audit.Log) {
		t.Helper()
		if err := log.(*sqlite.Log).Expire(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}
