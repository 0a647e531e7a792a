package clickhouse

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2"

	"palimpsest/internal/cursor"
)

// ReadCursors implements [cursor.Store]. A replica that lags has an older one,
// behind which the reader finds what the log knows.
func (l *Log) ReadCursors(ctx context.Context, readers ...string) ([]cursor.Cursor, error) {
	if err := l.enter(); err != nil {
		return nil, err
	}
	defer l.leave()
	out := make([]cursor.Cursor, len(readers))
	for i, reader := range readers {
		if err := l.readCursor(ctx, reader, &out[i]); err != nil {
			return nil, fmt.Errorf("audit clickhouse: read cursor of %s: %w", reader, plain(err))
		}
	}
	return out, nil
}

func (l *Log) readCursor(ctx context.Context, reader string, c *cursor.Cursor) error {
	rows, err := l.conn.Query(ctx, `SELECT stream, sequence, starts, alone, deaths FROM cursors
	  WHERE reader = {reader:String} ORDER BY at DESC LIMIT 1`, clickhouse.Named("reader", reader))
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var starts, deaths uint32
		if err := rows.Scan(&c.Stream, &c.Sequence, &starts, &c.Alone, &deaths); err != nil {
			return err
		}
		c.Starts, c.Deaths = int(starts), int(deaths)
	}
	return rows.Err()
}

// SetCursor implements [cursor.Store] with another row. The engine keeps the last
// one in the end.
func (l *Log) SetCursor(ctx context.Context, reader string, least uint64, c cursor.Cursor) error {
	if err := cursor.Check(ctx, l, reader, least); err != nil {
		return err
	}
	if err := l.enter(); err != nil {
		return err
	}
	defer l.leave()
	err := l.conn.Exec(ctx, `INSERT INTO cursors (reader, stream, sequence, starts, alone, deaths)
	  SELECT {reader:String}, {stream:String}, {sequence:UInt64}, {starts:UInt32}, {alone:UInt64}, {deaths:UInt32}`,
		clickhouse.Named("reader", reader), clickhouse.Named("stream", c.Stream), clickhouse.Named("sequence", c.Sequence),
		clickhouse.Named("starts", c.Starts), clickhouse.Named("alone", c.Alone), clickhouse.Named("deaths", c.Deaths))
	if err != nil {
		return fmt.Errorf("audit clickhouse: set cursor of %s: %w", reader, plain(err))
	}
	return nil
}
