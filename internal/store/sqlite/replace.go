package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"

	"palimpsest/internal/sqlitefile"
	"palimpsest/internal/store"
)

// KeptSuffix ends the name of the file that [Replace] keeps.
const KeptSuffix = ".old"

// NewSuffix ends the name of a file under construction that takes over the one whose name
// comes before it.
const NewSuffix = ".new"

// TakeOver closes the store and live, and puts its file in the place of that of live, as
// [Replace] does.
func (s *Store) TakeOver(_ context.Context, live store.Store, _ store.Remedy) (kept string, err error) {
	err = s.Close()
	if live != nil {
		err = errors.Join(err, live.Close())
	}
	if err != nil {
		return "", err
	}
	return Replace(strings.TrimSuffix(s.cfg.Path, NewSuffix), s.cfg.Path)
}

// Discard closes the store, which is under construction, and removes its file.
func (s *Store) Discard(context.Context) error { return errors.Join(s.Close(), Discard(s.cfg.Path)) }

// Discard removes a file that was under construction, if there is one. It must
// not be open.
func Discard(path string) error {
	for _, suffix := range []string{"", sqlitefile.LogSuffix, sqlitefile.IndexSuffix, sqlitefile.LockSuffix} {
		if err := remove(path + suffix); err != nil {
			return fmt.Errorf("sqlite: discard: %w", err)
		}
	}
	return nil
}

// Replace puts a sealed file in the place of the one at path, which must be closed,
// and returns the path under which it keeps that one; it removes the file that an
// earlier call kept. A crash at any moment leaves one of the two whole; or neither,
// if the file at path had a log beside it: then that file is kept, with its log.
// Replace returns [store.ErrLocked] while another process holds path.
func Replace(path, with string) (kept string, err error) {
	lock := flock.New(path + sqlitefile.LockSuffix)
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
	if _, err := os.Stat(with + sqlitefile.LogSuffix); err == nil {
		return "", fmt.Errorf("%s is not sealed: it has a log beside it", with)
	}
	steps, kept, err := replacement(path, with)
	if err != nil {
		return "", err
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return "", err
		}
	}
	return kept, nil
}

// replacement returns the steps of a replacement. After each, path is the old file
// with all of its log, or the new one; or it is absent and must be built again. A
// file without its log would be opened as if it were whole, and the log of the old
// file be taken for one of the new: so a file that has a log is removed before its
// log, and its log before the new file comes. A file that could be opened and was
// closed has none.
func replacement(path, with string) (steps []func() error, kept string, err error) {
	sync := func() error { return syncFile(filepath.Dir(path)) }
	there, err := exists(path)
	if err != nil {
		return nil, "", err
	}
	logged, err := exists(path + sqlitefile.LogSuffix)
	if err != nil {
		return nil, "", err
	}
	steps = append(steps, func() error { return syncFile(with) })
	// Without a file at path an earlier replacement may have stopped halfway: the file
	// that it kept stays.
	if there {
		kept = path + KeptSuffix
		steps = append(steps, func() error { return Discard(kept) })
		for _, suffix := range []string{sqlitefile.IndexSuffix, sqlitefile.LogSuffix, ""} {
			steps = append(steps, func() error { return link(path+suffix, kept+suffix) })
		}
	}
	if there && logged {
		steps = append(steps, sync, func() error { return remove(path) })
	}
	return append(steps, sync,
		func() error { return remove(path + sqlitefile.LogSuffix) },
		func() error { return remove(path + sqlitefile.IndexSuffix) },
		sync,
		func() error { return os.Rename(with, path) },
		func() error { return remove(with + sqlitefile.LockSuffix) },
		sync), kept, nil
}

func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// link gives a file a second name, if there is one.
func link(path, name string) error {
	if err := os.Link(path, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
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
