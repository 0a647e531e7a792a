package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"palimpsest/internal/audit"
	"palimpsest/internal/testengine/clickhouseserver"
)

// patience bounds what must come about in the end.
const patience = time.Minute

// connect opens a bare connection to a database with a log in it.
func connect(t *testing.T, dsn string) driver.Conn {
	t.Helper()
	log, err := Open(t.Context(), Config{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	conn, err := clickhouseserver.Connect(dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func exec(t *testing.T, conn driver.Conn, statement string) {
	t.Helper()
	if err := conn.Exec(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func one[T any](t *testing.T, conn driver.Conn, query string) (v T) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), query).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

// newest is the version that this program knows.
func newest(t *testing.T) uint64 {
	t.Helper()
	scripts, err := migrations.ReadDir("migrations")
	if err != nil {
		t.Fatal(err)
	}
	return uint64(len(scripts))
}

func TestOpenTogether(t *testing.T) {
	t.Parallel()
	dsn := clickhouseserver.DSN(t)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			log, err := Open(t.Context(), Config{DSN: dsn})
			if err != nil {
				t.Error(err)
				return
			}
			if err := errors.Join(log.Ping(t.Context()), log.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	conn := connect(t, dsn)
	if n := one[uint64](t, conn, "SELECT count() FROM migrations"); n != newest(t) {
		t.Errorf("%d scripts ran, want %d", n, newest(t))
	}
	if n := one[uint64](t, conn, "SELECT count() FROM system.tables WHERE database = currentDatabase() AND name = 'migrating'"); n != 0 {
		t.Error("the lock is still there")
	}
}

func TestNewerIsRefused(t *testing.T) {
	t.Parallel()
	dsn := clickhouseserver.DSN(t)
	exec(t, connect(t, dsn), "INSERT INTO migrations (version) SELECT 99")
	if _, err := Open(t.Context(), Config{DSN: dsn}); !errors.Is(err, audit.ErrNewer) {
		t.Errorf("%v, want ErrNewer", err)
	}
}

// A crash leaves half a script, and the lock.
func TestMigrationGoesOn(t *testing.T) {
	t.Parallel()
	conn := connect(t, clickhouseserver.DSN(t))
	exec(t, conn, "TRUNCATE TABLE migrations SYNC")
	exec(t, conn, "DROP VIEW daily_deltas_view SYNC")
	exec(t, conn, "CREATE TABLE migrating (nothing UInt8) ENGINE = MergeTree ORDER BY nothing")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()

	brief, stop := context.WithTimeout(ctx, 3*lockLook)
	defer stop()
	if err := migrate(brief, conn, place{}, lockLife); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("beside another's migration: %v", err)
	}
	if err := migrate(ctx, conn, place{}, 0); err != nil {
		t.Fatal(err)
	}
	if n := one[uint64](t, conn, "SELECT count() FROM system.tables WHERE database = currentDatabase() AND name = 'daily_deltas_view'"); n != 1 {
		t.Error("the view is missing")
	}
}

func TestMigrationWaitsForAnother(t *testing.T) {
	t.Parallel()
	conn := connect(t, clickhouseserver.DSN(t))
	exec(t, conn, "TRUNCATE TABLE migrations SYNC")
	exec(t, conn, "CREATE TABLE migrating (nothing UInt8) ENGINE = MergeTree ORDER BY nothing")
	done := make(chan error, 1)
	go func() { done <- migrate(t.Context(), conn, place{}, lockLife) }()
	exec(t, conn, fmt.Sprintf("INSERT INTO migrations (version) SELECT %d", newest(t)))
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("still waiting for a migration that has ended")
	}
}
