package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"palimpsest/internal/audit"
	"palimpsest/internal/sqlitefile"
)

// OpenReading opens the log at path to read it, also while another process has it
// open. It creates and changes nothing; Write and Ping return [audit.ErrLocked].
func OpenReading(ctx context.Context, path string) (*Log, error) {
	file, err := sqlitefile.OpenReading(ctx, Config{Path: path}.file())
	if err != nil {
		return nil, fmt.Errorf("audit sqlite: %w", err)
	}
	return &Log{file: file}, nil
}

// Check reads every page of the file and compares the pages' structure, as PRAGMA
// quick_check does, and calls step with how many of all checks are done.
func (l *Log) Check(ctx context.Context, step func(done, all int)) error {
	if err := l.enter(); err != nil {
		return err
	}
	defer l.leave()
	var finding string
	if err := l.file.Read.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&finding); err != nil {
		return fmt.Errorf("audit sqlite: check %s: %w", l.file.Path, err)
	}
	step(1, 1)
	if finding != "ok" {
		return fmt.Errorf("audit sqlite: check %s: %w: %s", l.file.Path, audit.ErrDamaged, finding)
	}
	return nil
}

// begin begins a write.
func (l *Log) begin(ctx context.Context) (*sql.Tx, error) {
	if l.file.Write == nil {
		return nil, audit.ErrLocked
	}
	return l.file.Write.BeginTx(ctx, nil)
}
