package erasure

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/services/query"
)

// Desk takes the erasures that the API asks for. A process ends its run once one is
// asked for, and the next run begins with it.
type Desk struct {
	book  *Book
	room  func() error
	now   func() time.Time
	asked chan struct{}
	once  sync.Once
}

var _ query.Erasures = (*Desk)(nil)

// NewDesk returns a desk that writes the jobs to book, where room returns no error.
func NewDesk(book *Book, room func() error, now func() time.Time) *Desk {
	return &Desk{book: book, room: room, now: now, asked: make(chan struct{})}
}

// Wanted is closed once an erasure was asked for; nil for a nil desk.
func (d *Desk) Wanted() <-chan struct{} {
	if d == nil {
		return nil
	}
	return d.asked
}

// Ask implements [query.Erasures].
func (d *Desk) Ask(ctx context.Context, project, user, key string) (string, error) {
	ids, err := d.AskAll(ctx, project, []string{user}, key)
	if err != nil {
		return "", err
	}
	return ids[0], nil
}

// AskAll implements [query.Erasures]. All jobs are on the disk before the run ends; if one
// cannot be written, the run ends for those before it.
func (d *Desk) AskAll(_ context.Context, project string, users []string, key string) (ids []string, err error) {
	if err := d.room(); errors.Is(err, ErrNoRoom) {
		return nil, api.NewProblem(http.StatusInsufficientStorage, api.CodeStorageFull, "", "%v", err)
	} else if err != nil {
		return nil, err
	}
	pending := false
	defer func() { // also of an error: the jobs before it are on the disk
		if pending {
			d.once.Do(func() { close(d.asked) })
		}
	}()
	for n, user := range users {
		of := key
		if of != "" && n > 0 {
			of = fmt.Sprintf("%s/%d", key, n)
		}
		r, err := d.book.Ask(project, user, of, d.now())
		if errors.Is(err, ErrOther) {
			err = store.ErrMismatch
		}
		if err != nil {
			return ids, err
		}
		ids, pending = append(ids, r.ID), pending || !r.Done()
	}
	return ids, nil
}

// Get implements [query.Erasures].
func (d *Desk) Get(_ context.Context, id string) (api.Receipt, error) {
	r, err := d.book.Get(id)
	if errors.Is(err, ErrUnknown) {
		err = query.ErrNoErasure
	}
	return r, err
}
