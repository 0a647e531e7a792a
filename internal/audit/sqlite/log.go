package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"palimpsest/internal/audit"
	"palimpsest/internal/sqlitefile"
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
	file *sqlitefile.File

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
	file, err := sqlitefile.Open(ctx, cfg.file())
	if err != nil {
		return nil, fmt.Errorf("audit sqlite: %w", err)
	}
	l := &Log{file: file, retention: cfg.Retention, now: cfg.Now}
	if l.now == nil {
		l.now = time.Now
	}
	l.mu.Lock() // rest and expire read them
	defer l.mu.Unlock()
	l.resting = time.AfterFunc(restAfter, l.rest)
	l.expiring = time.AfterFunc(0, l.expire)
	return l, nil
}

// file returns how the file is opened.
func (c Config) file() sqlitefile.Config {
	synchronous := "normal"
	if c.Full {
		synchronous = "full"
	}
	return sqlitefile.Config{
		Path:       c.Path,
		Write:      []string{"synchronous(" + synchronous + ")", "secure_delete(on)"},
		Immediate:  true,
		Migrations: migrations,
		Errors:     sqlitefile.Errors{Locked: audit.ErrLocked, Newer: audit.ErrNewer},
	}
}

// restAfter is how long nothing must have been written before the write-ahead
// log is copied into the file.
const restAfter = time.Second

// rest copies the write-ahead log into the file and truncates it. It never
// blocks: while a read needs the log, it is repeated.
func (l *Log) rest() {
	if l.enter() != nil {
		return
	}
	defer l.leave()
	ctx, cancel := context.WithTimeout(context.Background(), restAfter)
	defer cancel()
	conn, err := l.file.Write.Conn(ctx)
	if err != nil {
		return
	}
	defer conn.Close() //nolint:errcheck // it goes back to the pool
	var busy, logged, copied int
	_, _ = conn.ExecContext(ctx, "PRAGMA busy_timeout = 0")
	err = conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &logged, &copied)
	_, _ = conn.ExecContext(context.WithoutCancel(ctx), "PRAGMA busy_timeout = "+sqlitefile.BusyTimeout)
	_, _ = conn.ExecContext(context.WithoutCancel(ctx), "PRAGMA shrink_memory")
	if err == nil && busy != 0 {
		l.resting.Reset(restAfter)
	}
}

// Gone is closed once the file was removed or replaced under the log, which can
// no longer be written then; [Log.Ping] names the path.
func (l *Log) Gone() <-chan struct{} { return l.file.Gone() }

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
	if err := l.file.Check(); err != nil {
		return fmt.Errorf("audit sqlite: %w", err)
	}
	tx, err := l.begin(ctx)
	if err != nil {
		return fmt.Errorf("audit sqlite: ping %s: %w", l.file.Path, err)
	}
	if err := tx.Rollback(); err != nil {
		return fmt.Errorf("audit sqlite: ping %s: %w", l.file.Path, err)
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
	for _, timer := range []*time.Timer{l.resting, l.expiring} {
		if timer != nil {
			timer.Stop()
		}
	}
	return l.file.Close()
}
