// Package sqlitefile opens, locks, watches and migrates a SQLite file in WAL mode. The
// stores in SQLite files share it; their tables are their own.
package sqlitefile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
	_ "modernc.org/sqlite" // the driver
)

// Suffixes of the files beside a database: SQLite's log and its index, and our lock.
const (
	LogSuffix   = "-wal"
	IndexSuffix = "-shm"
	LockSuffix  = ".lock"
)

// BusyTimeout is how long a connection waits for the lock of another, in milliseconds.
const BusyTimeout = "10000"

// idleTime is after how long a connection without a read gives its memory back.
const idleTime = 15 * time.Second

// Config says which file is opened and how.
type Config struct {
	// Path of the file; its directory is created where it is missing.
	Path string
	// Write and Read are pragmas of the connections, such as "synchronous(full)".
	Write, Read []string
	// Immediate makes a transaction take the write lock when it begins.
	Immediate bool
	// Migrations holds the scripts migrations/*.sql of the schema.
	Migrations fs.FS
	// Errors are returned by [Open] and [OpenReading].
	Errors Errors
}

// Errors are the sentinels of the contract that a file serves.
type Errors struct {
	Locked  error // another process, or another File, holds the file
	Newer   error // the schema is of a later version
	Damaged error // SQLite's log was cut; nil: it is not checked
}

// File is an open database.
type File struct {
	// Path is absolute.
	Path string
	// Write is one connection; nil where the file was opened by [OpenReading].
	Write *sql.DB
	// Read are connections that cannot write.
	Read *sql.DB

	lock  *flock.Flock
	watch *watch
}

// Open opens a file to write it, creating and migrating it where needed. Only its owner
// may read the file.
func Open(ctx context.Context, cfg Config) (*File, error) {
	path, err := filepath.Abs(cfg.Path)
	if err != nil {
		return nil, fmt.Errorf("resolve path: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("create directory: %w", err)
	}
	f := &File{Path: path}
	if err := f.open(ctx, cfg); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (f *File) open(ctx context.Context, cfg Config) error {
	f.lock = flock.New(f.Path+LockSuffix, flock.SetPermissions(0o600))
	held, err := f.lock.TryLock()
	if err != nil {
		return fmt.Errorf("lock %s: %w", f.Path, err)
	}
	if !held {
		return fmt.Errorf("%s: %w", f.Path, cfg.Errors.Locked)
	}
	if cfg.Errors.Damaged != nil {
		if err := checkLog(f.Path, cfg.Errors.Damaged); err != nil {
			return fmt.Errorf("open %s: %w", f.Path, err)
		}
	}
	if err := private(f.Path); err != nil {
		return err
	}
	if f.Write, err = sql.Open("sqlite", DSN(f.Path, cfg, true)); err != nil {
		return fmt.Errorf("open %s: %w", f.Path, err)
	}
	f.Write.SetMaxOpenConns(1)
	if err := Migrate(ctx, f.Write, cfg.Migrations, cfg.Errors.Newer); err != nil {
		return fmt.Errorf("migrate %s: %w", f.Path, err)
	}
	if err := f.openRead(cfg); err != nil {
		return err
	}
	f.watch, err = watchFiles(f.Path, f.Path+LogSuffix)
	return err
}

func (f *File) openRead(cfg Config) (err error) {
	if f.Read, err = sql.Open("sqlite", DSN(f.Path, cfg, false)); err != nil {
		return fmt.Errorf("open %s: %w", f.Path, err)
	}
	f.Read.SetConnMaxIdleTime(idleTime)
	return nil
}

// OpenReading opens a file to read it, also while another process has it open. It creates
// and changes nothing. A file of an earlier schema is an error: [Open] migrates it.
func OpenReading(ctx context.Context, cfg Config) (*File, error) {
	path, err := filepath.Abs(cfg.Path)
	if err != nil {
		return nil, fmt.Errorf("resolve path: %w", err)
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	f := &File{Path: path}
	if err = f.openRead(cfg); err == nil {
		if err = current(ctx, f.Read, cfg.Migrations, cfg.Errors.Newer); err != nil {
			err = fmt.Errorf("open %s: %w", path, err)
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Gone is closed once the file was removed or replaced while in use. It can no longer be
// written then; [File.Check] names the path.
func (f *File) Gone() <-chan struct{} { return f.watch.gone }

// Check returns an error that names the path once the file is gone. A file that was opened
// by [OpenReading] is not watched.
func (f *File) Check() error {
	if f.watch == nil {
		return nil
	}
	return f.watch.check()
}

// Close releases the file.
func (f *File) Close() error {
	var errs []error
	if f.watch != nil {
		f.watch.stop()
	}
	for _, db := range []*sql.DB{f.Read, f.Write} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	if f.lock != nil {
		errs = append(errs, f.lock.Close())
	}
	return errors.Join(errs...)
}

// DSN is the data source name of a connection that writes, or of one that cannot. It
// escapes the path, which may hold any character of a file name.
func DSN(path string, cfg Config, write bool) string {
	q := url.Values{"_pragma": {"busy_timeout(" + BusyTimeout + ")"}}
	pragmas := append([]string{"query_only(1)"}, cfg.Read...)
	if write {
		pragmas = cfg.Write
		q.Set("_journal_mode", "WAL") // the driver sets it after the pragmas; page_size must come before
		if cfg.Immediate {
			q.Set("_txlock", "immediate")
		}
	}
	for _, p := range pragmas {
		q.Add("_pragma", p)
	}
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: q.Encode()}
	return u.String()
}
