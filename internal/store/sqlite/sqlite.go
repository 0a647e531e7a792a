package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"palimpsest/internal/sqlitefile"
	"palimpsest/internal/store"
)

// Store is the memory store in one SQLite file. It is safe for concurrent use.
type Store struct {
	cfg   Config
	file  *sqlitefile.File
	reads *reads
	queue chan *job
	lists *lru[listKey, postingList]
	rows  *lru[rowKey, store.Hit]
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
	file, err := sqlitefile.Open(ctx, cfg.file())
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w", sentinel(err))
	}
	cfg.Path = file.Path
	s := &Store{cfg: cfg, file: file, queue: make(chan *job, maxGroup), done: make(chan struct{}), loads: newLoads()}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(sentinel(err), file.Close())
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) error {
	conn, err := s.file.Write.Conn(ctx)
	if err != nil {
		return fmt.Errorf("sqlite: open %s: %w", s.cfg.Path, err)
	}
	if err := s.openSpaces(ctx, conn); err != nil {
		return errors.Join(err, conn.Close())
	}
	if s.earlier, err = readEarlier(ctx, conn); err != nil {
		return errors.Join(err, conn.Close())
	}
	s.reads = newReads(s.file.Read)
	s.reads.noted = s.noted
	s.placesOf = newLRU[placesKey, foundPlaces](placesMemory)
	s.lists = newLRU[listKey, postingList](s.cfg.TextMemory)
	s.rows = newLRU[rowKey, store.Hit](s.cfg.TextMemory / 2)
	go newWriter(conn, s).loop(s.queue, s.done)
	if s.cfg.CheckAfter > 0 {
		s.checkLater(s.cfg.CheckAfter)
	}
	return nil
}

// pageBytes holds a vector of the local embedder beside its key, so that a scan
// follows no overflow pages.
const pageBytes = "8192"

// logBytes is what is left of a log that grew beyond it, once it starts over.
const logBytes = "16777216"

// file returns how the file is opened.
func (c Config) file() sqlitefile.Config {
	synchronous, checkpoint := c.Synchronous, "2000"
	if c.Building {
		synchronous, checkpoint = "off", "20000"
	}
	common := []string{
		"synchronous(" + synchronous + ")", "wal_autocheckpoint(" + checkpoint + ")", "journal_size_limit(" + logBytes + ")", "temp_store(memory)",
	}
	return sqlitefile.Config{
		Path:       c.Path,
		Write:      append([]string{"page_size(" + pageBytes + ")", "cache_size(-16384)"}, common...),
		Read:       append([]string{"cache_size(-2048)"}, common...),
		Migrations: migrations,
		Errors:     sqlitefile.Errors{Locked: store.ErrLocked, Newer: store.ErrNewer, Damaged: store.ErrDamaged},
	}
}

// Gone is closed once the file was removed or replaced under the store, which
// can no longer be written then; [Store.Ping] names the path.
func (s *Store) Gone() <-chan struct{} { return s.file.Gone() }

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
	return errors.Join(s.reads.close(), s.file.Close())
}
