package clickhouse

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"palimpsest/internal/audit"
)

// migrations are the scripts of the schema, which a [place] fits to itself. They
// are numbered from 1 without a gap and only ever add, and each statement (IF NOT
// EXISTS) may run again: ClickHouse has no transactions, so that a crash may leave
// half a script.
//
//go:embed migrations/*.sql
var migrations embed.FS

const (
	// lockLife is when a lock counts as left behind by a crash. A migration takes
	// a second. Should two run at once all the same, no harm comes of it.
	lockLife = time.Minute
	// lockWait bounds the wait for another's migration; longer than lockLife.
	lockWait = 2 * time.Minute
	lockLook = 100 * time.Millisecond
)

// The codes of exceptions.
const (
	codeTableExists  = 57
	codeUnknownTable = 60
)

func hasCode(err error, code int32) bool {
	var e *clickhouse.Exception
	return errors.As(err, &e) && e.Code == code
}

// migrate brings the database to the newest version. One that is there already
// is only read. A lock older than life counts as left behind.
func migrate(ctx context.Context, conn driver.Conn, to place, life time.Duration) error {
	scripts, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return err
	}
	locked := false
	for started := time.Now(); !locked; {
		version, err := readVersion(ctx, conn)
		switch {
		case err != nil:
			return fmt.Errorf("read version: %w", err)
		case version > len(scripts):
			return fmt.Errorf("schema %d, this program knows %d: %w", version, len(scripts), audit.ErrNewer)
		case version == len(scripts):
			return nil
		case time.Since(started) > lockWait:
			return fmt.Errorf("wait for another migration: %w", audit.ErrLocked)
		}
		if locked, err = lock(ctx, conn, to, life); err != nil {
			return fmt.Errorf("lock: %w", err)
		}
	}
	return errors.Join(run(ctx, conn, to, scripts), unlock(ctx, conn, to))
}

// run runs the scripts that the database has not seen; the lock is held.
func run(ctx context.Context, conn driver.Conn, to place, scripts []string) error {
	version, err := readVersion(ctx, conn)
	if err != nil {
		return fmt.Errorf("read version: %w", err)
	}
	const table = "CREATE TABLE IF NOT EXISTS migrations{everywhere} (version UInt32, at DateTime DEFAULT now()) ENGINE = {MergeTree} ORDER BY version"
	if err := to.exec(ctx, conn, table); err != nil {
		return err
	}
	for i, name := range scripts {
		if i < version {
			continue
		}
		script, err := fs.ReadFile(migrations, name)
		if err != nil {
			return err
		}
		for statement := range strings.SplitSeq(strings.TrimSpace(string(script)), ";\n") {
			if err := to.exec(ctx, conn, strings.TrimSuffix(statement, ";")); err != nil {
				return fmt.Errorf("%s: %w", path.Base(name), err)
			}
		}
		err = conn.Exec(ctx, "INSERT INTO migrations (version) SELECT {version:UInt32}", clickhouse.Named("version", i+1))
		if err != nil {
			return fmt.Errorf("record version %d: %w", i+1, err)
		}
	}
	return nil
}

// readVersion is 0 for a database that has no schema.
func readVersion(ctx context.Context, conn driver.Conn) (int, error) {
	var version uint32
	err := conn.QueryRow(ctx, "SELECT max(version) FROM migrations").Scan(&version)
	if hasCode(err, codeUnknownTable) {
		return 0, nil
	}
	return int(version), err
}

// lock makes a table that only one can make. While another has it, it waits a
// moment and returns false, and takes away what a crash left.
func lock(ctx context.Context, conn driver.Conn, to place, life time.Duration) (bool, error) {
	err := to.exec(ctx, conn, "CREATE TABLE migrating{everywhere} (nothing UInt8) ENGINE = MergeTree ORDER BY nothing")
	if !hasCode(err, codeTableExists) {
		return err == nil, err
	}
	var age int64
	err = conn.QueryRow(ctx, `SELECT dateDiff('second', max(metadata_modification_time), now())
		FROM system.tables WHERE database = currentDatabase() AND name = 'migrating' HAVING count() > 0`).Scan(&age)
	if err == nil && time.Duration(age)*time.Second > life {
		return false, unlock(ctx, conn, to)
	}
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case <-time.After(lockLook):
		return false, nil
	}
}

// unlock also works where the context has ended.
func unlock(ctx context.Context, conn driver.Conn, to place) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockLife)
	defer cancel()
	return to.exec(ctx, conn, "DROP TABLE IF EXISTS migrating{everywhere} SYNC")
}

// retain gives the records the wanted times to live, where they have others.
func retain(ctx context.Context, conn driver.Conn, to place, cfg Config) error {
	var engine string
	err := conn.QueryRow(ctx, "SELECT engine_full FROM system.tables WHERE database = currentDatabase() AND name = 'audit'").Scan(&engine)
	if err != nil {
		return err
	}
	_, rest, _ := strings.Cut(engine, " TTL ")
	has, _, _ := strings.Cut(rest, " SETTINGS ")
	switch want := ttl(cfg); {
	case has == want:
		return nil
	case want == "":
		return to.exec(ctx, conn, "ALTER TABLE audit{everywhere} REMOVE TTL")
	default:
		return to.exec(ctx, conn, "ALTER TABLE audit{everywhere} MODIFY TTL "+want)
	}
}

// ttl is the times to live of records as the server writes them, so that they can be
// compared: it makes toIntervalSecond(10) of 10 seconds.
func ttl(cfg Config) string {
	after := func(d time.Duration) string {
		return fmt.Sprintf("toDateTime(applied_at) + toIntervalSecond(%d)", int64(d/time.Second))
	}
	var rules []string
	if cfg.Retention > 0 {
		rules = append(rules, after(cfg.Retention))
	}
	for _, term := range cfg.Told.Terms() {
		reasons := make([]string, len(term.Reasons))
		for i, r := range term.Reasons {
			reasons[i] = fmt.Sprintf("(reason = '%s')", r)
		}
		rules = append(rules, fmt.Sprintf("%s WHERE (kind = 'noop') AND (%s)", after(term.Keep), strings.Join(reasons, " OR ")))
	}
	return strings.Join(rules, ", ")
}
