package clickhouse

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

const (
	// requestLimit bounds one request, which reads a page. Migrations and reports
	// take as long as their callers let them.
	requestLimit = 10 * time.Second
	// dialLimit bounds the wait for a connection, unless the DSN says otherwise.
	dialLimit = 5 * time.Second
	// writeLimit bounds the write of a batch. One that spans a hundred months makes a
	// part for each, which takes more than 10 s on a busy machine.
	writeLimit = 30 * time.Second
)

// asker is as much of a connection as statements need.
type asker interface {
	Query(ctx context.Context, query string, args ...any) (driver.Rows, error)
	QueryRow(ctx context.Context, query string, args ...any) driver.Row
	Exec(ctx context.Context, query string, args ...any) error
}

// brief is a connection that ends each request within [requestLimit]. It has no
// method that would not.
type brief struct{ conn driver.Conn }

// limited has the deadline of one request. A result that is read, or a batch that is
// sent, after the call returned needs it until then.
func limited(ctx context.Context, limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(ctx, limit)
	context.AfterFunc(ctx, cancel)
	return ctx
}

// Query implements [asker].
func (b brief) Query(ctx context.Context, query string, args ...any) (driver.Rows, error) {
	return b.conn.Query(limited(ctx, requestLimit), query, args...)
}

// QueryRow implements [asker].
func (b brief) QueryRow(ctx context.Context, query string, args ...any) driver.Row {
	return b.conn.QueryRow(limited(ctx, requestLimit), query, args...)
}

// PrepareBatch is that of [driver.Conn].
func (b brief) PrepareBatch(ctx context.Context, query string, opts ...driver.PrepareBatchOption) (driver.Batch, error) {
	return b.conn.PrepareBatch(limited(ctx, writeLimit), query, opts...)
}

// Exec implements [asker].
func (b brief) Exec(ctx context.Context, query string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	return b.conn.Exec(ctx, query, args...)
}
