package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// reads is the pool of reading connections and their prepared statements. The
// set of statements is finite: texts are built from a fixed number of forms.
type reads struct {
	db *sql.DB
	// turns bounds the reads under way to the connections that are kept: a new
	// one reads the schema and prepares every statement anew, which costs more
	// than most reads.
	turns chan struct{}
	mu    sync.RWMutex
	by    map[string]*sql.Stmt
	// noted is called with each error, and returns it.
	noted func(error) error
	// scopes are the ids of fact scopes that were read from this file.
	scopes store.Memo[scope.Scope, int64]
}

// maxReads is how many reads run at a time.
const maxReads = 8

// idleTime is after how long a connection without a read gives its memory back.
const idleTime = 15 * time.Second

// atMost limits the rows of a frequent query. SQLite plans for the value that is
// bound to a plain LIMIT ?, and so prepares the statement again whenever it changes;
// it does not evaluate a sum.
const atMost = ` LIMIT ? + 0`

func newReads(db *sql.DB) *reads {
	db.SetMaxIdleConns(maxReads)
	db.SetConnMaxIdleTime(idleTime)
	return &reads{db: db, noted: func(err error) error { return err }, turns: make(chan struct{}, maxReads), by: map[string]*sql.Stmt{}}
}

// begin waits for a turn; end gives it back.
func (r *reads) begin(ctx context.Context) error {
	select {
	case r.turns <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *reads) end() { <-r.turns }

// requestLimit bounds one read, which is a page at most, and the wait of a write for
// its place in the queue. Rebuilds, which take longer, read without it.
const requestLimit = 10 * time.Second

// request begins a read that ends with ctx within [requestLimit]; done ends it.
func (r *reads) request(ctx context.Context) (_ context.Context, done func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	if err := r.begin(ctx); err != nil {
		cancel()
		return nil, nil, err
	}
	return ctx, func() { cancel(); r.end() }, nil
}

func (r *reads) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	r.mu.RLock()
	stmt := r.by[query]
	r.mu.RUnlock()
	if stmt != nil {
		return stmt, nil
	}
	stmt, err := r.db.PrepareContext(ctx, query)
	if err != nil {
		return nil, readError(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.by[query]; known != nil {
		_ = stmt.Close()
		return known, nil
	}
	r.by[query] = stmt
	return stmt, nil
}

func (r *reads) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, stmt := range r.by {
		_ = stmt.Close()
	}
	return r.db.Close()
}

// each runs query and calls scan on each row. Callers take what they need from
// the row and return, so that no connection is held while others are asked for.
func (r *reads) each(ctx context.Context, query string, args []any, scan func(row scanner) error) error {
	ctx, done, err := r.request(ctx)
	if err != nil {
		return err
	}
	defer done()
	stmt, err := r.prepare(ctx, query)
	if err != nil {
		return r.noted(err)
	}
	return r.noted(eachRow(ctx, stmt, args, scan))
}

// one scans the only row of query into dest; found is false where there is none.
func (r *reads) one(ctx context.Context, query string, args []any, dest ...any) (found bool, err error) {
	ctx, done, err := r.request(ctx)
	if err != nil {
		return false, err
	}
	defer done()
	stmt, err := r.prepare(ctx, query)
	if err != nil {
		return false, r.noted(err)
	}
	switch err := stmt.QueryRowContext(ctx, args...).Scan(dest...); {
	case errors.Is(err, sql.ErrNoRows):
		return false, nil
	case err != nil:
		return false, r.noted(readError(err))
	}
	return true, nil
}

// within runs read on one consistent view of the database.
func (r *reads) within(ctx context.Context, read func(tx *view) error) error {
	ctx, done, err := r.request(ctx)
	if err != nil {
		return err
	}
	defer done()
	tx, err := r.db.BeginTx(ctx, nil)
	if err != nil {
		return readError(err)
	}
	defer tx.Rollback() //nolint:errcheck // it only ends the read
	return r.noted(read(&view{reads: r, tx: tx}))
}

// view is a read transaction.
type view struct {
	reads *reads
	tx    *sql.Tx
}

func (v *view) each(ctx context.Context, query string, args []any, scan func(row scanner) error) error {
	stmt, err := v.reads.prepare(ctx, query)
	if err != nil {
		return err
	}
	return eachRow(ctx, v.tx.StmtContext(ctx, stmt), args, scan)
}

// querier is either all connections or one view.
type querier interface {
	each(ctx context.Context, query string, args []any, scan func(row scanner) error) error
}

// scanner is a row.
type scanner interface{ Scan(dest ...any) error }

func eachRow(ctx context.Context, stmt *sql.Stmt, args []any, scan func(row scanner) error) error {
	rows, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		return readError(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells what matters
	for rows.Next() {
		if err := scan(rows); err != nil {
			return fmt.Errorf("sqlite: read row: %w", err)
		}
	}
	if err := rows.Err(); err != nil {
		return readError(err)
	}
	return nil
}
