package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"palimpsest/internal/cursor"
)

// ReadCursors implements [cursor.Store].
func (l *Log) ReadCursors(ctx context.Context, readers ...string) ([]cursor.Cursor, error) {
	if err := l.enter(); err != nil {
		return nil, err
	}
	defer l.leave()
	out := make([]cursor.Cursor, len(readers))
	for i, reader := range readers {
		c := &out[i]
		err := l.file.Read.QueryRowContext(ctx, `SELECT stream, sequence, starts, alone, deaths FROM cursors WHERE reader = ?`, reader).
			Scan(&c.Stream, &c.Sequence, &c.Starts, &c.Alone, &c.Deaths)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return nil, fmt.Errorf("audit sqlite: read cursor of %s: %w", reader, err)
		}
	}
	return out, nil
}

// SetCursor implements [cursor.Store].
func (l *Log) SetCursor(ctx context.Context, reader string, least uint64, c cursor.Cursor) error {
	if err := cursor.Check(ctx, l, reader, least); err != nil {
		return err
	}
	if err := l.enter(); err != nil {
		return err
	}
	defer l.leave()
	_, err := l.file.Write.ExecContext(ctx, `INSERT OR REPLACE INTO cursors (reader, stream, sequence, starts, alone, deaths) VALUES (?, ?, ?, ?, ?, ?)`,
		reader, c.Stream, c.Sequence, c.Starts, c.Alone, c.Deaths)
	if err != nil {
		return fmt.Errorf("audit sqlite: set cursor of %s: %w", reader, err)
	}
	return nil
}
