package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"runtime"
	"time"

	"palimpsest/internal/sqlitefile"
	"palimpsest/internal/store"
)

// maxGroup bounds the writes of one transaction, and those that may wait.
const maxGroup = 1024

// job is one write. do may run more than once (after a rollback) and must leave
// its results as if it had run once. A refusal (a sentinel of the contract,
// found before anything was written) is a result like any other: do keeps it
// and returns nil; an error undoes what it wrote.
type job struct {
	ctx  context.Context
	do   func(w *writer) error
	err  error
	done chan struct{}
}

// write hands do to the writer and waits until it is committed. A job whose ctx
// ends while it waits for its turn does not run; one that runs is waited for, so
// that the answer is never in doubt and do shares nothing with a caller who left.
// The wait is bounded by requestLimit, but for a file that is being built.
func (s *Store) write(ctx context.Context, do func(w *writer) error) error {
	if !s.cfg.Building {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, requestLimit)
		defer cancel()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	j := &job{ctx: ctx, do: do, done: make(chan struct{})}
	if err := s.enqueue(j); err != nil {
		return err
	}
	<-j.done
	return s.noted(j.err)
}

func (s *Store) enqueue(j *job) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return store.ErrClosed
	}
	if s.reading {
		return store.ErrLocked
	}
	select {
	case s.queue <- j:
		return nil
	case <-j.ctx.Done():
		return j.ctx.Err()
	}
}

// writer owns the writing connection. Everything on it runs in one goroutine.
type writer struct {
	conn  *sql.Conn
	store *Store
	stmts map[string]*sql.Stmt
	// orders are the statements that return no rows, and args what the one being
	// run is bound to.
	orders map[string]order
	args   []driver.NamedValue
	rows   *rowCache
	// after holds the updates of caches in memory that run after the commit, in order.
	after []func()
	swept time.Time
	// draft is the transaction that a file under construction is written in.
	draft draft
}

func newWriter(conn *sql.Conn, s *Store) *writer {
	return &writer{conn: conn, store: s, stmts: map[string]*sql.Stmt{}, orders: map[string]order{}, rows: newRowCache()}
}

// loop commits what waits, as soon as it waits: the group is whatever came while
// the group before was written.
func (w *writer) loop(queue <-chan *job, done chan<- struct{}) {
	defer close(done)
	group := make([]*job, 0, maxGroup)
	commit := w.commit
	if w.store.cfg.Building {
		commit = w.build
	}
	rest := time.NewTimer(restAfter)
	defer rest.Stop()
	for {
		j, more := w.await(queue, rest)
		if !more {
			break
		}
		group = append(group[:0], j)
		group = drain(queue, group)
		// Those whom the last commit woke get a chance to ask again.
		runtime.Gosched()
		group = drain(queue, group)
		commit(group)
		for i, j := range group {
			close(j.done)
			group[i] = nil
		}
	}
	// SQLite keeps its log beside the file while a statement is left.
	for _, st := range w.stmts {
		_ = st.Close()
	}
	_ = w.conn.Raw(func(any) error {
		for _, st := range w.orders {
			_ = st.Close()
		}
		return nil
	})
	_ = w.conn.Close()
}

// restAfter is how long nothing must have been written before the log is copied
// into the file.
const restAfter = time.Second

// await returns the next job; false once there will be none. Where none comes for
// a while, the log is emptied in the meantime.
func (w *writer) await(queue <-chan *job, rest *time.Timer) (j *job, more bool) {
	rest.Reset(restAfter)
	for {
		select {
		case j, more = <-queue:
			return j, more
		case <-rest.C:
			if !w.rest() {
				rest.Reset(restAfter)
			}
		}
	}
}

// rest copies the log into the file, truncates it and frees the pages in memory.
// It never blocks. It returns false while a read needs the log or a file under
// construction is not settled.
func (w *writer) rest() bool {
	if w.draft.open {
		return false
	}
	var busy, logged, copied int
	_ = w.exec("PRAGMA busy_timeout = 0")
	_, err := w.one("PRAGMA wal_checkpoint(TRUNCATE)", nil, &busy, &logged, &copied)
	_ = w.exec("PRAGMA busy_timeout = " + sqlitefile.BusyTimeout)
	_ = w.exec("PRAGMA shrink_memory")
	return err != nil || busy == 0
}

func drain(queue <-chan *job, group []*job) []*job {
	for len(group) < cap(group) {
		select {
		case j, ok := <-queue:
			if !ok {
				return group
			}
			group = append(group, j)
		default:
			return group
		}
	}
	return group
}

// commit runs the group in one transaction. The first attempt has no savepoints,
// since errors are rare; after an error all of it is undone and run again with one
// savepoint a job, so that the failure of one job does not fail another.
func (w *writer) commit(group []*job) {
	if err := w.store.file.Check(); err != nil {
		failAll(group, fmt.Errorf("sqlite: %w", err))
		return
	}
	clean, err := w.transact(group, w.runBare)
	if err == nil && !clean {
		_, err = w.transact(group, w.runGuarded)
	}
	if err != nil {
		failAll(group, writeError(err))
	}
}

// transact runs the group between BEGIN and COMMIT; clean is false, and nothing
// is committed, if run asks for another attempt.
func (w *writer) transact(group []*job, run func([]*job) (clean bool, err error)) (clean bool, err error) {
	for _, j := range group {
		j.err = nil
	}
	if err := w.exec("BEGIN IMMEDIATE"); err != nil {
		return false, err
	}
	if clean, err = run(group); clean && err == nil {
		err = w.conclude()
	}
	if err != nil || !clean {
		w.forget()
		w.after = w.after[:0]
		_ = w.exec("ROLLBACK") // SQLite may have rolled back by itself
	}
	return clean, err
}

// conclude commits, and updates the caches in memory. A concurrent read of a
// watermark or outcome waits for that (see [Store.followed]).
func (w *writer) conclude() error {
	if err := w.rows.flush(w); err != nil {
		return err
	}
	w.store.following.Lock()
	defer w.store.following.Unlock()
	if err := w.exec("COMMIT"); err != nil {
		return err
	}
	for _, f := range w.after {
		f()
	}
	w.after = w.after[:0]
	return nil
}

// followed returns once the caches in memory are as new as the rows read before. A
// caller that decides on a revision, or has got an outcome, must not find less by a
// search than the revision holds.
func (s *Store) followed() {
	s.following.RLock()
	defer s.following.RUnlock()
}

func (w *writer) runBare(group []*job) (bool, error) {
	for _, j := range group {
		if j.err = j.ctx.Err(); j.err != nil {
			continue
		}
		if j.do(w) != nil {
			return false, nil //nolint:nilerr // the group runs again, job by job
		}
	}
	return true, nil
}

func (w *writer) runGuarded(group []*job) (bool, error) {
	for _, j := range group {
		if j.err = j.ctx.Err(); j.err != nil {
			continue
		}
		if err := w.exec("SAVEPOINT job"); err != nil {
			return false, err
		}
		mark := len(w.after)
		err := j.do(w)
		if err == nil {
			err = w.rows.flush(w)
		}
		if err != nil {
			j.err = writeError(err)
			w.forget()
			w.after = w.after[:mark]
			if err := w.exec("ROLLBACK TO job"); err != nil {
				return false, err
			}
		}
		if err := w.exec("RELEASE job"); err != nil {
			return false, err
		}
	}
	return true, nil
}

// forget drops what was read or changed in a transaction that is undone.
func (w *writer) forget() {
	w.rows = newRowCache()
}

func failAll(group []*job, err error) {
	for _, j := range group {
		if j.err == nil {
			j.err = err
		}
	}
}

// then runs f after the commit, in the writer's goroutine.
func (w *writer) then(f func()) { w.after = append(w.after, f) }

func (w *writer) stmt(query string) (*sql.Stmt, error) {
	if st := w.stmts[query]; st != nil {
		return st, nil
	}
	st, err := w.conn.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	w.stmts[query] = st
	return st, nil
}

func (w *writer) exec(query string, args ...any) error {
	_, err := w.run(query, args...)
	return err
}

// order is a prepared statement that returns no rows.
type order interface {
	driver.Stmt
	driver.StmtExecContext
}

// run executes a statement that returns no rows. It calls the driver directly, since
// the work of database/sql for shared connections costs a tenth of the statement,
// and a kilobyte an episode. The connection gets no context: interrupting one
// caller's statement would end the transaction of all.
func (w *writer) run(query string, args ...any) (res driver.Result, err error) {
	defer func() {
		clear(w.args)
		w.args = w.args[:0]
	}()
	for i, arg := range args {
		value, err := driver.DefaultParameterConverter.ConvertValue(arg)
		if err != nil {
			return nil, fmt.Errorf("bind argument %d: %w", i+1, err)
		}
		w.args = append(w.args, driver.NamedValue{Ordinal: i + 1, Value: value})
	}
	err = w.conn.Raw(func(conn any) error {
		st, err := w.prepare(conn, query)
		if err == nil {
			res, err = st.ExecContext(context.Background(), w.args)
		}
		return err
	})
	return res, err
}

func (w *writer) prepare(conn any, query string) (order, error) {
	if st := w.orders[query]; st != nil {
		return st, nil
	}
	st, err := conn.(driver.ConnPrepareContext).PrepareContext(context.Background(), query) //nolint:forcetypeassert // the driver's
	if err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	w.orders[query] = st.(order) //nolint:forcetypeassert // the driver's
	return w.orders[query], nil
}

// one scans the only row of query; found is false where there is none.
func (w *writer) one(query string, args []any, dest ...any) (found bool, err error) {
	st, err := w.stmt(query)
	if err != nil {
		return false, err
	}
	err = st.QueryRowContext(context.Background(), args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

func (w *writer) each(_ context.Context, query string, args []any, scan func(row scanner) error) error {
	st, err := w.stmt(query)
	if err != nil {
		return err
	}
	return eachRow(context.Background(), st, args, scan)
}
