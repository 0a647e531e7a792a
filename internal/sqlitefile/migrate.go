package sqlitefile

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"path"
	"strconv"
)

// Conn is a [*sql.DB] or a [*sql.Conn] to SQLite, which keeps the version in
// PRAGMA user_version.
type Conn interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	BeginTx(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, error)
}

// Migrate runs the scripts migrations/*.sql, in the order of their names, that
// the database has not seen yet. They are numbered from 1 without a gap and only
// ever add. Each step is one transaction, so that a crash leaves a whole
// version. A database of a later version is an error that wraps newer.
func Migrate(ctx context.Context, conn Conn, scripts fs.FS, newer error) error {
	names, err := fs.Glob(scripts, "migrations/*.sql")
	if err != nil {
		return err
	}
	var version int
	if err := conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return fmt.Errorf("read version: %w", err)
	}
	if version > len(names) {
		return fmt.Errorf("schema %d, this program knows %d: %w", version, len(names), newer)
	}
	for i, name := range names[version:] {
		script, err := fs.ReadFile(scripts, name)
		if err == nil {
			err = step(ctx, conn, string(script), version+i+1)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path.Base(name), err)
		}
	}
	return nil
}

// current returns nil if the database has the version that [Migrate] would bring
// it to, and changes nothing.
func current(ctx context.Context, conn Conn, scripts fs.FS, newer error) error {
	names, err := fs.Glob(scripts, "migrations/*.sql")
	if err != nil {
		return err
	}
	var version int
	if err := conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return fmt.Errorf("read version: %w", err)
	}
	switch {
	case version > len(names):
		return fmt.Errorf("schema %d, this program knows %d: %w", version, len(names), newer)
	case version < len(names):
		return fmt.Errorf("schema %d is older than %d, to which a start of Palimpsest brings it", version, len(names))
	}
	return nil
}

func step(ctx context.Context, conn Conn, script string, version int) error {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit there is nothing to undo
	if _, err := tx.ExecContext(ctx, script); err != nil {
		return err
	}
	// A pragma takes no parameters; version is ours.
	if _, err := tx.ExecContext(ctx, "PRAGMA user_version = "+strconv.Itoa(version)); err != nil {
		return err
	}
	return tx.Commit()
}
