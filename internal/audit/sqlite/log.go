package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"
	_ "modernc.org/sqlite" // the driver

	"palimpsest/internal/audit"
	"palimpsest/internal/schema"
	"palimpsest/internal/watch"
)

// Config of the log.
type Config struct {
	// Path of the file; its directory is created where it is missing.
	Path string
	// Full syncs each write to the disk before it is acknowledged; otherwise a
	// write survives the death of any process, but not of the machine. What the
	// log loses so is in the stream still.
	Full bool
	// Retention is that of records which reports count by their reason.
	Retention audit.Retention
	// Now is the clock of the retention; nil means the system's.
	Now func() time.Time
}

// Validate refuses a Config without a path, and a retention that cannot be.
func (c Config) Validate() error {
	if c.Path == "" {
		return errors.New("audit sqlite: path is required")
	}
	if err := c.Retention.Validate(); err != nil {
		return fmt.Errorf("audit sqlite: retention: %w", err)
	}
	return nil
}

// Log is the audit log in one SQLite file. It is safe for concurrent use.
type Log struct {
	path   string
	lock   *flock.Flock
	writes *sql.DB
	reads  *sql.DB
	watch  *watch.Files

	retention audit.Retention
	now       func() time.Time
	expiring  *time.Timer // fires when expired records are looked for

	resting   *time.Timer // fires once nothing was written for a while
	measuring sync.Mutex
	measured  bool // every effect has its tally

	mu     sync.RWMutex // held for reading by every call, so that Close waits
	closed bool
}

var _ audit.Log = (*Log)(nil)

// Open opens the log, creating and migrating it where needed. It returns
// [audit.ErrLocked] while another process (or Log) holds the file, and
// [audit.ErrNewer] for a schema of a later version.
func Open(ctx context.Context, cfg Config) (*Log, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	path, err := filepath.Abs(cfg.Path)
	if err != nil {
		return nil, fmt.Errorf("audit sqlite: resolve path: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("audit sqlite: create directory: %w", err)
	}
	l := &Log{path: path, retention: cfg.Retention, now: cfg.Now}
	if l.now == nil {
		l.now = time.Now
	}
	if err := l.open(ctx, cfg); err != nil {
		return nil, errors.Join(err, l.release())
	}
	return l, nil
}

func (l *Log) open(ctx context.Context, cfg Config) error {
	l.lock = flock.New(l.path + ".lock")
	held, err := l.lock.TryLock()
	if err != nil {
		return fmt.Errorf("audit sqlite: lock %s: %w", l.path, err)
	}
	if !held {
		return fmt.Errorf("audit sqlite: %s: %w", l.path, audit.ErrLocked)
	}
	if err := schema.Private(l.path); err != nil {
		return fmt.Errorf("audit sqlite: %w", err)
	}
	if l.writes, err = sql.Open("sqlite", dsn(l.path, cfg.Full, false)); err != nil {
		return fmt.Errorf("audit sqlite: open %s: %w", l.path, err)
	}
	l.writes.SetMaxOpenConns(1)
	if err := schema.Migrate(ctx, l.writes, migrations, audit.ErrNewer); err != nil {
		return fmt.Errorf("audit sqlite: migrate %s: %w", l.path, err)
	}
	if l.reads, err = sql.Open("sqlite", dsn(l.path, cfg.Full, true)); err != nil {
		return fmt.Errorf("audit sqlite: open %s: %w", l.path, err)
	}
	l.reads.SetConnMaxIdleTime(idleTime)
	if l.watch, err = watch.Start(l.path, l.path+"-wal"); err != nil {
		return fmt.Errorf("audit sqlite: %w", err)
	}
	l.mu.Lock() // rest and expire read them
	defer l.mu.Unlock()
	l.resting = time.AfterFunc(restAfter, l.rest)
	l.expiring = time.AfterFunc(0, l.expire)
	return nil
}

const (
	// restAfter is how long nothing must have been written before the write-ahead
	// log is copied into the file.
	restAfter = time.Second
	// idleTime is after how long a connection without a read gives its memory back.
	idleTime = 15 * time.Second
)

// rest copies the write-ahead log into the file and truncates it. It never
// blocks: while a read needs the log, it is repeated.
func (l *Log) rest() {
	if l.enter() != nil {
		return
	}
	defer l.leave()
	ctx, cancel := context.WithTimeout(context.Background(), restAfter)
	defer cancel()
	conn, err := l.writes.Conn(ctx)
	if err != nil {
		return
	}
	defer conn.Close() //nolint:errcheck // it goes back to the pool
	var busy, logged, copied int
	_, _ = conn.ExecContext(ctx, "PRAGMA busy_timeout = 0")
	err = conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &logged, &copied)
	_, _ = conn.ExecContext(context.WithoutCancel(ctx), "PRAGMA busy_timeout = "+busyTimeout)
	_, _ = conn.ExecContext(context.WithoutCancel(ctx), "PRAGMA shrink_memory")
	if err == nil && busy != 0 {
		l.resting.Reset(restAfter)
	}
}

// Gone is closed once the file was removed or replaced under the log, which can
// no longer be written then; [Log.Ping] names the path.
func (l *Log) Gone() <-chan struct{} { return l.watch.Gone() }

// busyTimeout is in milliseconds.
const busyTimeout = "10000"

// dsn escapes the path, which may hold any character a file name can.
func dsn(path string, full, reader bool) string {
	q := url.Values{}
	synchronous := "normal"
	if full {
		synchronous = "full"
	}
	for _, p := range []string{"busy_timeout(" + busyTimeout + ")", "journal_mode(wal)", "synchronous(" + synchronous + ")", "secure_delete(on)"} {
		q.Add("_pragma", p)
	}
	if reader {
		q.Add("_pragma", "query_only(1)")
	} else {
		q.Set("_txlock", "immediate")
	}
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: q.Encode()}
	return u.String()
}

// requestLimit bounds one request, which reads a page or writes a batch. Reports
// take as long as their callers let them.
const requestLimit = 10 * time.Second

// enter refuses calls on a closed log; the caller must leave.
func (l *Log) enter() error {
	l.mu.RLock()
	if l.closed {
		l.mu.RUnlock()
		return audit.ErrClosed
	}
	return nil
}

func (l *Log) leave() { l.mu.RUnlock() }

// request is enter for a call that ends with its context within [requestLimit]. The
// caller must call leave.
func (l *Log) request(ctx context.Context) (_ context.Context, leave func(), err error) {
	if err := l.enter(); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	return ctx, func() { cancel(); l.leave() }, nil
}

// Ping implements [audit.Log]: it takes the write lock and gives it back.
func (l *Log) Ping(ctx context.Context) error {
	ctx, leave, err := l.request(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if l.watch == nil {
		return audit.ErrLocked
	}
	if err := l.watch.Check(); err != nil {
		return fmt.Errorf("audit sqlite: %w", err)
	}
	tx, err := l.begin(ctx)
	if err != nil {
		return fmt.Errorf("audit sqlite: ping %s: %w", l.path, err)
	}
	if err := tx.Rollback(); err != nil {
		return fmt.Errorf("audit sqlite: ping %s: %w", l.path, err)
	}
	return nil
}

// Close waits for calls under way and releases the file.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return audit.ErrClosed
	}
	l.closed = true
	return l.release()
}

func (l *Log) release() error {
	var errs []error
	if l.resting != nil {
		l.resting.Stop()
	}
	if l.expiring != nil {
		l.expiring.Stop()
	}
	if l.watch != nil {
		l.watch.Stop()
	}
	if l.reads != nil {
		errs = append(errs, l.reads.Close())
	}
	if l.writes != nil {
		errs = append(errs, l.writes.Close())
	}
	if l.lock != nil {
		errs = append(errs, l.lock.Close())
	}
	return errors.Join(errs...)
}
