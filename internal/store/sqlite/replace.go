package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"palimpsest/internal/store"
)

// beside are the files that stand beside a database: SQLite's log and its index,
// and our lock.
const (
	walSuffix  = "-wal"
	shmSuffix  = "-shm"
	lockSuffix = ".lock"
	// oldSuffix names the generation before.
	oldSuffix = ".old"
)

// Discard removes a file that was under construction, if there is one. It must
// not be open.
func Discard(path string) error {
	for _, suffix := range []string{"", walSuffix, shmSuffix, lockSuffix} {
		if err := remove(path + suffix); err != nil {
			return fmt.Errorf("sqlite: discard: %w", err)
		}
	}
	return nil
}

// Replace puts a sealed file in the place of the one at path, which must be
// closed, and returns where it keeps that one; what was kept there before is
// removed. A crash at any moment leaves one of the two, whole. It returns
// [store.ErrLocked] while another process holds path.
func Replace(path, with string) (kept string, err error) {
	lock := flock.New(path + lockSuffix)
	held, err := lock.TryLock()
	if err == nil && !held {
		err = store.ErrLocked
	}
	if err != nil {
		return "", fmt.Errorf("sqlite: replace %s: %w", path, err)
	}
	defer lock.Close() //nolint:errcheck // nothing was written through it
	if kept, err = replace(path, with); err != nil {
		return "", fmt.Errorf("sqlite: replace %s: %w", path, err)
	}
	return kept, nil
}

func replace(path, with string) (kept string, err error) {
	if _, err := os.Stat(with + walSuffix); err == nil {
		return "", fmt.Errorf("%s is not sealed: it has a log beside it", with)
	}
	if err := syncFile(with); err != nil {
		return "", err
	}
	kept = path + oldSuffix
	if err := Discard(kept); err != nil {
		return "", err
	}
	// A log of the old file would be taken for one of the new. A file that could
	// be opened and was closed has none.
	for _, suffix := range []string{walSuffix, shmSuffix} {
		if err := os.Rename(path+suffix, kept+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	switch err := os.Link(path, kept); {
	case errors.Is(err, fs.ErrNotExist):
		kept = ""
	case err != nil:
		return "", err
	}
	if err := os.Rename(with, path); err != nil {
		return "", err
	}
	if err := remove(with + lockSuffix); err != nil {
		return "", err
	}
	return kept, syncFile(filepath.Dir(path))
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// syncFile forces a file, or the entries of a directory, to the disk.
func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
