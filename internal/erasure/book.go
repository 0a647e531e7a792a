package erasure

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"palimpsest/internal/memory"
)

// ErrUnknown: there is no erasure of that id.
var ErrUnknown = errors.New("erasure: no such erasure")

// ErrOther: the key of a request was used to erase another user.
var ErrOther = errors.New("erasure: the key is that of another erasure")

// recordsDir holds a file for each erasure, within a data directory.
const recordsDir = "erasures"

// Book is the erasures of a data directory. It is safe for concurrent use within
// one process.
type Book struct {
	dir string
	key *Key

	mu      sync.Mutex
	records []Receipt // oldest first
}

// Open reads the erasures of a data directory, which must exist, and makes its key
// where there is none.
func Open(data string) (*Book, error) {
	key, err := OpenKey(data)
	if err != nil {
		return nil, err
	}
	b := &Book{dir: filepath.Join(data, recordsDir), key: key}
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return nil, fmt.Errorf("open erasures: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(b.dir, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("open erasures: %w", err)
	}
	for _, file := range files {
		var r Receipt
		raw, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(raw, &r)
		}
		if err != nil {
			return nil, fmt.Errorf("open erasures: %s: %w", filepath.Base(file), err)
		}
		b.records = append(b.records, r)
	}
	slices.SortFunc(b.records, func(x, y Receipt) int {
		return cmp.Or(x.AskedAt.Compare(y.AskedAt), strings.Compare(x.ID, y.ID))
	})
	return b, nil
}

// OpenExisting is [Open] for a data directory that has erasures; nil where it has none.
func OpenExisting(data string) (*Book, error) {
	files, err := filepath.Glob(filepath.Join(data, recordsDir, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("look for erasures: %w", err)
	}
	if len(files) == 0 {
		return nil, nil //nolint:nilnil // a nil Book has no erasures
	}
	return Open(data)
}

// Create is [Open] for a data directory that may not exist yet. If private is set, it
// removes the permissions of other accounts; a directory that belongs to another account,
// as a volume may, stays as it is.
func Create(data string, private bool) (*Book, error) {
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	info, err := os.Stat(data)
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	if private && info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(data, 0o700); err != nil && !errors.Is(err, fs.ErrPermission) { //nolint:gosec // it is a directory
			return nil, fmt.Errorf("data: %w", err)
		}
	}
	return Open(data)
}

// Settled returns [ErrPending] while an erasure is not finished.
func (b *Book) Settled() error {
	if len(b.Pending()) > 0 {
		return ErrPending
	}
	return nil
}

// Public is the key that checks the receipts, in hex.
func (b *Book) Public() string { return b.key.Public() }

// Ask writes the job of erasing a user and returns it. A job for the user that is
// not finished is returned as it is, and so is the one that was asked for with the same
// key, finished or not; an empty key is of none. The error of a key that was used for
// another user wraps [ErrOther].
func (b *Book) Ask(project, user, key string, at time.Time) (Receipt, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	whom, id := b.key.Hash(project, user), uuid.NewString()
	if key != "" {
		id = b.key.request(project, key)
	}
	for _, r := range b.records {
		switch {
		case r.ID == id && r.Whom != whom:
			return Receipt{}, ErrOther
		case r.ID == id:
			return r, nil
		}
	}
	return b.ask(id, project, whom, at)
}

// AskAgain writes a job for the user of a receipt of this directory: a copy of the
// directory that is older than the receipt still holds the data. The error of
// a receipt of another directory wraps [ErrReceipt].
func (b *Book) AskAgain(receipt Receipt, at time.Time) (Receipt, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if receipt.PublicKey != b.Public() {
		return Receipt{}, fmt.Errorf("%w: it is of another data directory", ErrReceipt)
	}
	r, err := b.ask(uuid.NewString(), receipt.Project, receipt.Whom, at)
	if err == nil && r.Incarnation < receipt.Incarnation {
		r.Incarnation = receipt.Incarnation
		r.Until = max(r.Until, receipt.Until)
		err = b.save(r)
	}
	return r, err
}

func (b *Book) ask(id, project, whom string, at time.Time) (Receipt, error) {
	r := Receipt{ID: id, Project: project, Whom: whom, Incarnation: 1, AskedAt: at.UTC(), Places: []Place{}}
	for _, earlier := range b.records {
		if earlier.Whom != whom {
			continue
		}
		if !earlier.Done() {
			return earlier, nil
		}
		r.Incarnation = max(r.Incarnation, earlier.Incarnation+1)
	}
	return r, b.save(r)
}

// save writes an erasure to the disk.
func (b *Book) save(r Receipt) error {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = write(filepath.Join(b.dir, r.ID+".json"), append(raw, '\n'))
	}
	if err != nil {
		return fmt.Errorf("save erasure: %w", err)
	}
	i := slices.IndexFunc(b.records, func(known Receipt) bool { return known.ID == r.ID })
	if i < 0 {
		b.records = append(b.records, r)
	} else {
		b.records[i] = r
	}
	return nil
}

// Get returns an erasure by its id, or [ErrUnknown].
func (b *Book) Get(id string) (Receipt, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.records {
		if r.ID == id {
			return r, nil
		}
	}
	return Receipt{}, fmt.Errorf("%w: %s", ErrUnknown, id)
}

// Pending returns the jobs that are not finished, oldest first.
func (b *Book) Pending() []Receipt {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(b.records), Receipt.Done)
}

// Born returns the incarnation of a scope that has no row: how often its user was
// erased. A nil book has no erasures.
func (b *Book) Born(project, user string) (incarnation uint64) {
	for _, r := range b.tombstones(project, user) {
		incarnation = max(incarnation, r.Incarnation)
	}
	return incarnation
}

// Erased reports whether an episode of a user, which EPISODES took at a time and
// numbered, is one that was erased. The number alone does not tell: streams that are
// new, or were restored from a backup, count on from a lower one. A nil book has no
// erasures.
func (b *Book) Erased(project, user string, sequence uint64, arrived time.Time) bool {
	return sequence > 0 && slices.ContainsFunc(b.tombstones(project, user), func(r Receipt) bool {
		return sequence <= r.Until && (r.FinishedAt == nil || !arrived.After(*r.FinishedAt))
	})
}

// tombstones are the erasures of a user.
func (b *Book) tombstones(project, user string) (of []Receipt) {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.records) == 0 || user == "" {
		return nil
	}
	hash := b.key.Hash(project, user)
	for _, r := range b.records {
		if r.Project == project && r.Whom == hash {
			of = append(of, r)
		}
	}
	return of
}

// whom returns the user of an erasure. It caches the compared names.
func (b *Book) whom(r Receipt) memory.Whom {
	known := map[string]bool{}
	var mu sync.Mutex
	return memory.Whom{Project: r.Project, Is: func(user string) bool {
		mu.Lock()
		defer mu.Unlock()
		is, ok := known[user]
		if !ok {
			is = b.key.Hash(r.Project, user) == r.Whom
			known[user] = is
		}
		return is
	}}
}
