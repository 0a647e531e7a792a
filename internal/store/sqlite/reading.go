package sqlite

import (
	"context"
	"errors"
	"fmt"

	"palimpsest/internal/sqlitefile"
)

// OpenReading opens the file at path to read it, also while another process has it
// open. It creates and changes nothing, and writes return [store.ErrLocked]. A file
// of an earlier version is an error: opening it by [Open] brings it up to date.
func OpenReading(ctx context.Context, path string) (*Store, error) {
	cfg := Config{Path: path}.withDefaults()
	file, err := sqlitefile.OpenReading(ctx, cfg.file())
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w", sentinel(err))
	}
	cfg.Path = file.Path
	s := &Store{cfg: cfg, file: file, queue: make(chan *job), done: make(chan struct{}), loads: newLoads(), reading: true}
	close(s.done)
	sp, err := readSpaces(ctx, file.Read)
	if err != nil {
		return nil, errors.Join(sentinel(err), file.Close())
	}
	s.serve(sp)
	s.reads = newReads(file.Read)
	s.reads.noted = s.noted
	return s, nil
}
