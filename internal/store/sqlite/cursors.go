package sqlite

import (
	"context"
	"fmt"
	"slices"
	"time"

	"palimpsest/internal/cursor"
)

// ReadCursors implements [cursor.Store].
func (s *Store) ReadCursors(ctx context.Context, readers ...string) ([]cursor.Cursor, error) {
	out := make([]cursor.Cursor, len(readers))
	for i, reader := range readers {
		c := &out[i]
		_, err := s.reads.one(ctx, `SELECT stream, sequence, starts, alone, deaths FROM cursors WHERE reader = ?`, []any{reader},
			&c.Stream, &c.Sequence, &c.Starts, &c.Alone, &c.Deaths)
		if err != nil {
			return nil, fmt.Errorf("read cursor of %s: %w", reader, err)
		}
	}
	return out, nil
}

// SetCursor implements [cursor.Store].
func (s *Store) SetCursor(ctx context.Context, reader string, least uint64, c cursor.Cursor) error {
	if err := cursor.Check(ctx, s, reader, least); err != nil {
		return err
	}
	err := s.write(ctx, func(w *writer) error {
		return w.exec(`INSERT OR REPLACE INTO cursors (reader, stream, sequence, starts, alone, deaths) VALUES (?, ?, ?, ?, ?, ?)`,
			reader, c.Stream, c.Sequence, c.Starts, c.Alone, c.Deaths)
	})
	if err != nil {
		return fmt.Errorf("set cursor of %s: %w", reader, err)
	}
	return nil
}

// Share implements [cursor.Shares]: the file belongs to one process.
func (s *Store) Share(_ context.Context, _ string, readers []string, _ string, ttl time.Duration) ([]string, error) {
	if ttl <= 0 {
		return nil, nil
	}
	return slices.Clone(readers), nil
}
