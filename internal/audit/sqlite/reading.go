package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"palimpsest/internal/audit"
	"palimpsest/internal/schema"
)

// OpenReading opens the log at path to read it, also while another process has it
// open. It creates and changes nothing; Write and Ping return [audit.ErrLocked].
func OpenReading(ctx context.Context, path string) (*Log, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("audit sqlite: resolve path: %w", err)
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("audit sqlite: open %s: %w", path, err)
	}
	db, err := sql.Open("sqlite", dsn(path, false, true))
	if err != nil {
		return nil, fmt.Errorf("audit sqlite: open %s: %w", path, err)
	}
	if err := schema.Current(ctx, db, migrations, audit.ErrNewer); err != nil {
		return nil, errors.Join(fmt.Errorf("audit sqlite: open %s: %w", path, err), db.Close())
	}
	return &Log{path: path, reads: db}, nil
}

// Check reads every page of the file and compares the pages' structure, as PRAGMA
// quick_check does, and calls step with how many of all checks are done.
func (l *Log) Check(ctx context.Context, step func(done, all int)) error {
	if err := l.enter(); err != nil {
		return err
	}
	defer l.leave()
	var finding string
	if err := l.reads.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&finding); err != nil {
		return fmt.Errorf("audit sqlite: check %s: %w", l.path, err)
	}
	step(1, 1)
	if finding != "ok" {
		return fmt.Errorf("audit sqlite: check %s: %w: %s", l.path, audit.ErrDamaged, finding)
	}
	return nil
}

// begin begins a write.
func (l *Log) begin(ctx context.Context) (*sql.Tx, error) {
	if l.writes == nil {
		return nil, audit.ErrLocked
	}
	return l.writes.BeginTx(ctx, nil)
}
