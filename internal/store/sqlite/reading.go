package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"palimpsest/internal/schema"
	"palimpsest/internal/store"
)

// OpenReading opens the file at path to read it, also while another process has it
// open. It creates and changes nothing, and writes return [store.ErrLocked]. A file
// of an earlier version is an error: opening it by [Open] brings it up to date.
func OpenReading(ctx context.Context, path string) (_ *Store, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return nil, fmt.Errorf("sqlite: resolve path: %w", err)
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("sqlite: open %s: %w", path, err)
	}
	cfg := Config{Path: path}.withDefaults()
	s := &Store{cfg: cfg, queue: make(chan *job), done: make(chan struct{}), loads: newLoads(), reading: true}
	close(s.done)
	db, err := sql.Open("sqlite", dsn(cfg, true))
	if err != nil {
		return nil, fmt.Errorf("sqlite: open %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(sentinel(err), db.Close())
		}
	}()
	if err := schema.Current(ctx, db, migrations, store.ErrNewer); err != nil {
		return nil, fmt.Errorf("sqlite: open %s: %w", path, err)
	}
	sp, err := readSpaces(ctx, db)
	if err != nil {
		return nil, err
	}
	s.serve(sp)
	s.reads = newReads(db)
	s.reads.noted = s.noted
	return s, nil
}
