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
	"sync/atomic"

	"github.com/gofrs/flock"
	_ "modernc.org/sqlite" // the driver

	"palimpsest/internal/schema"
	"palimpsest/internal/store"
	"palimpsest/internal/watch"
)

// Store is the memory store in one SQLite file. It is safe for concurrent use.
type Store struct {
	cfg    Config
	lock   *flock.Flock
	reads  *reads
	writes *sql.DB
	queue  chan *job
	lists  *lru[listKey, postingList]
	rows   *lru[rowKey, store.Hit]
	// spaces are those of the last commit, and serving what searches go through.
	spaces  atomic.Pointer[spaces]
	serving atomic.Pointer[serving]
	// placesOf is read before all else: a search of few rows costs little more
	// than to ask where they are.
	placesOf *lru[placesKey, foundPlaces]
	// turn is that of the projects whose texts are to be embedded, by the tables of
	// the space.
	turn struct {
		sync.Mutex
		last [2]string
	}
	// following is locked from a commit until the caches in memory include it.
	following sync.RWMutex
	watch     *watch.Files
	// earlier is until when outcomes are read that were stored one by one.
	earlier int64
	damage  damage
	loads   *loads

	reading bool // opened by OpenReading

	mu     sync.RWMutex // guards closed, and queue against being closed under a sender
	closed bool
	done   chan struct{} // closed when the writer has ended
}

var _ store.Store = (*Store)(nil)

// Open opens the store, creating and migrating it where needed. It returns
// [store.ErrLocked] while another process (or Store) holds the file,
// [store.ErrNewer] for a schema of a later version, and [store.ErrDamaged] for a
// file that cannot be read.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	path, err := filepath.Abs(cfg.Path)
	if err != nil {
		return nil, fmt.Errorf("sqlite: resolve path: %w", err)
	}
	cfg.Path = path
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("sqlite: create directory: %w", err)
	}
	s := &Store{cfg: cfg, queue: make(chan *job, maxGroup), done: make(chan struct{}), loads: newLoads()}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.release())
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) (err error) {
	s.lock = flock.New(s.cfg.Path + lockSuffix)
	held, err := s.lock.TryLock()
	if err != nil {
		return fmt.Errorf("sqlite: lock %s: %w", filepath.Dir(s.cfg.Path), err)
	}
	if !held {
		return fmt.Errorf("sqlite: data directory %s: %w", filepath.Dir(s.cfg.Path), store.ErrLocked)
	}
	if err := checkLog(s.cfg.Path); err != nil {
		return fmt.Errorf("sqlite: open %s: %w", s.cfg.Path, err)
	}
	if err := schema.Private(s.cfg.Path); err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	conn, err := s.connect(ctx)
	if err != nil {
		return fmt.Errorf("sqlite: open %s: %w", s.cfg.Path, sentinel(err))
	}
	defer func() {
		if err != nil {
			err = errors.Join(sentinel(err), conn.Close())
		}
	}()
	if err := schema.Migrate(ctx, conn, migrations, store.ErrNewer); err != nil {
		return fmt.Errorf("sqlite: migrate %s: %w", s.cfg.Path, err)
	}
	if err := s.openSpaces(ctx, conn); err != nil {
		return err
	}
	if s.earlier, err = readEarlier(ctx, conn); err != nil {
		return err
	}
	readDB, err := sql.Open("sqlite", dsn(s.cfg, true))
	if err != nil {
		return fmt.Errorf("sqlite: open %s: %w", s.cfg.Path, err)
	}
	s.reads = newReads(readDB)
	s.reads.noted = s.noted
	s.placesOf = newLRU[placesKey, foundPlaces](placesMemory)
	s.lists = newLRU[listKey, postingList](s.cfg.TextMemory)
	s.rows = newLRU[rowKey, store.Hit](s.cfg.TextMemory / 2)
	if s.watch, err = watch.Start(s.cfg.Path, s.cfg.Path+"-wal"); err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	go newWriter(conn, s).loop(s.queue, s.done)
	if s.cfg.CheckAfter > 0 {
		s.checkLater(s.cfg.CheckAfter)
	}
	return nil
}

// connect opens the writing connection. The page size can only be set before
// the file's first page is written, which switching to WAL does.
func (s *Store) connect(ctx context.Context) (*sql.Conn, error) {
	db, err := sql.Open("sqlite", dsn(s.cfg, false))
	if err != nil {
		return nil, err
	}
	s.writes = db
	s.writes.SetMaxOpenConns(1)
	conn, err := s.writes.Conn(ctx)
	if err != nil {
		return nil, err
	}
	for _, pragma := range []string{"page_size = " + pageBytes, "journal_mode = WAL"} {
		if _, err := conn.ExecContext(ctx, "PRAGMA "+pragma); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return conn, nil
}

// pageBytes holds a vector of the local embedder beside its key, so that a scan
// follows no overflow pages.
const pageBytes = "8192"

const (
	// busyTimeout is in milliseconds.
	busyTimeout = "10000"
	// logBytes is what is left of a log that grew beyond it, once it begins anew.
	logBytes = "16777216"
)

// Gone is closed once the file was removed or replaced under the store, which
// can no longer be written then; [Store.Ping] names the path.
func (s *Store) Gone() <-chan struct{} { return s.watch.Gone() }

// Close waits for writes under way and releases the file.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return store.ErrClosed
	}
	s.closed = true
	close(s.queue)
	s.mu.Unlock()
	s.damage.end()
	s.loads.end()
	<-s.done
	return s.release()
}

// release lets go of whatever open got hold of, last first.
func (s *Store) release() error {
	var errs []error
	if s.watch != nil {
		s.watch.Stop()
	}
	if s.reads != nil {
		errs = append(errs, s.reads.close())
	}
	if s.writes != nil {
		errs = append(errs, s.writes.Close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	return errors.Join(errs...)
}

// dsn escapes the path, which may hold any character a file name can.
func dsn(cfg Config, reader bool) string {
	q := url.Values{}
	add := func(p string) { q.Add("_pragma", p) }
	add("busy_timeout(" + busyTimeout + ")")
	if cfg.Building {
		add("synchronous(off)")
		add("wal_autocheckpoint(20000)")
	} else {
		add("synchronous(" + cfg.Synchronous + ")")
		add("wal_autocheckpoint(2000)")
	}
	add("journal_size_limit(" + logBytes + ")")
	add("temp_store(memory)")
	if reader {
		add("query_only(1)")
		add("cache_size(-2048)")
	} else {
		add("cache_size(-16384)")
	}
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(cfg.Path), RawQuery: q.Encode()}
	return u.String()
}
