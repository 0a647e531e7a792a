package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strconv"

	"palimpsest/internal/audit"
)

// migrations are numbered from 1 without a gap and only ever add.
//
//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the schema to the newest version, which PRAGMA user_version
// holds, one transaction a step.
func migrate(ctx context.Context, db *sql.DB) error {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return err
	}
	var version int
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return fmt.Errorf("read version: %w", err)
	}
	if version > len(names) {
		return fmt.Errorf("schema %d, this program knows %d: %w", version, len(names), audit.ErrNewer)
	}
	for i, name := range names[version:] {
		if err := step(ctx, db, name, version+i+1); err != nil {
			return fmt.Errorf("%s: %w", path.Base(name), err)
		}
	}
	return nil
}

func step(ctx context.Context, db *sql.DB, name string, version int) error {
	script, err := migrations.ReadFile(name)
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit there is nothing to undo
	if _, err := tx.ExecContext(ctx, string(script)); err != nil {
		return err
	}
	// A pragma takes no parameters; version is ours.
	if _, err := tx.ExecContext(ctx, "PRAGMA user_version = "+strconv.Itoa(version)); err != nil {
		return err
	}
	return tx.Commit()
}
