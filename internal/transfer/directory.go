package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
	"github.com/nats-io/nats.go/jetstream"
)

// Directory is a data directory that an import makes.
type Directory struct {
	Data string // the data directory, which errors name
	// Streams is the directory of the streams. It gets this name when all are written;
	// before that, Streams + DraftSuffix.
	Streams string
	// Mark is a file that is there until the import was compared with its export.
	Mark string
	// Lock is a file that is locked until the import was compared.
	Lock string
	// Logged reports whether there was an audit log before.
	Logged bool
	// Open opens empty streams in a directory, which nothing else uses.
	Open func(ctx context.Context, dir string) (js jetstream.JetStream, done func(context.Context) error, err error)
	// Rebuild builds the memory store from the streams, and returns its digest.
	Rebuild func() (string, error)
	// Discard removes the memory store, and the audit log unless there was one before.
	Discard func(logged bool) error
}

// DraftSuffix ends the name of the directory of the streams while they are written.
const DraftSuffix = ".import"

// logged is what the mark says if there was an audit log before.
const logged = "logged"

// Import makes the directory of what [Source.Export] wrote. If it fails or is killed, it
// leaves no streams and no memory store. gone and step are as in [Import].
func (d Directory) Import(ctx context.Context, from io.Reader, gone Erasures, step func(int)) (out Counts, err error) {
	if err := os.MkdirAll(filepath.Dir(d.Lock), 0o700); err != nil {
		return out, err
	}
	unlock, err := d.lock()
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if _, err := os.Stat(d.Streams); err == nil { // another import ended meanwhile
		return out, fmt.Errorf("import into %s: %w", d.Streams, fs.ErrExist)
	}
	draft := d.Streams + DraftSuffix
	if err := errors.Join(os.RemoveAll(draft), os.MkdirAll(draft, 0o700)); err != nil {
		return out, err
	}
	if out, err = d.write(ctx, draft, from, gone, step); err == nil {
		if err = d.mark(); err == nil {
			err = os.Rename(draft, d.Streams)
		}
	}
	if err != nil {
		return out, errors.Join(err, os.RemoveAll(draft), os.RemoveAll(d.Mark))
	}
	digest, err := d.Rebuild()
	if err == nil && out.Erased == 0 && digest != out.Digest {
		err = fmt.Errorf("the memory store has the digest %s, the export %s", digest, out.Digest)
	}
	if err != nil { // the next start would serve it
		_, left := d.Drop()
		return out, errors.Join(err, left)
	}
	out.Digest = digest
	return out, os.Remove(d.Mark)
}

func (d Directory) write(ctx context.Context, dir string, from io.Reader, gone Erasures, step func(int)) (out Counts, err error) {
	js, done, err := d.Open(ctx, dir)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, done(context.WithoutCancel(ctx))) }()
	return Import(ctx, js, from, gone, step)
}

// ErrUnderWay means that another process imports into the directory.
var ErrUnderWay = errors.New("an import is under way")

// ErrUnchecked means that an import ended before it was compared with its export.
var ErrUnchecked = errors.New("an import ended before its memory was compared with the export; it was removed: import again, or start with an empty memory")

func (d Directory) lock() (unlock func() error, err error) {
	lock := flock.New(d.Lock, flock.SetPermissions(0o600))
	held, err := lock.TryLock()
	if err == nil && !held {
		err = fmt.Errorf("data: %s: %w: wait until it ends", d.Data, ErrUnderWay)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return func() error { return errors.Join(os.Remove(lock.Path()), lock.Close()) }, nil
}

// Resume is [Directory.Drop] for a start. It returns [ErrUnderWay] during an import, and
// [ErrUnchecked] once where it removed one.
func (d Directory) Resume() error {
	if _, err := os.Stat(d.Lock); err == nil {
		unlock, err := d.lock()
		if err == nil { // its process died
			err = unlock()
		}
		if err != nil {
			return err
		}
	}
	found, err := d.Drop()
	if err == nil && found {
		err = ErrUnchecked
	}
	return err
}

// mark writes the mark, before the streams have their name.
func (d Directory) mark() error {
	text := ""
	if d.Logged {
		text = logged
	}
	f, err := os.OpenFile(d.Mark, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// Drop removes an import that was not compared with its export, and reports whether there
// was any.
func (d Directory) Drop() (bool, error) {
	text, err := os.ReadFile(d.Mark)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err = errors.Join(err, os.RemoveAll(d.Streams), d.Discard(string(text) == logged)); err != nil {
		return true, fmt.Errorf("remove an import: %w", err)
	}
	return true, os.Remove(d.Mark)
}
