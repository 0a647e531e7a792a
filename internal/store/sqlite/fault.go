package sqlite

import (
	"errors"
	"fmt"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"palimpsest/internal/store"
)

// sentinel adds the sentinel of the contract that SQLite's code stands for.
func sentinel(err error) error {
	var e *sqlite.Error
	if !errors.As(err, &e) || errors.Is(err, store.ErrDamaged) || errors.Is(err, store.ErrFull) {
		return err
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("%w (%w)", store.ErrFull, err)
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%w (%w)", store.ErrDamaged, err)
	}
	return err
}

func writeError(err error) error { return fmt.Errorf("sqlite: write: %w", sentinel(err)) }

// readError makes use after Close a [store.ErrClosed]: database/sql has no
// sentinel for it.
func readError(err error) error {
	if strings.Contains(err.Error(), "sql: database is closed") || strings.Contains(err.Error(), "sql: statement is closed") {
		return store.ErrClosed
	}
	return fmt.Errorf("sqlite: query: %w", sentinel(err))
}
