package consolidator

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"palimpsest/internal/audit"
	"palimpsest/internal/memory"
)

// abreast is how many scopes are looked up in the store at once. One after the
// other, a start waits for as many round trips as there are scopes: longer than a
// process lives that is killed again and again.
const abreast = 64

// together looks up where scopes stand in the store, many at a time, soon after
// each was added: what is compared should not drift apart.
type together struct {
	service *Service
	// each is told in the order of adding.
	each  func(head audit.Head, state memory.State)
	heads []audit.Head
}

// add takes a scope, and looks up all that were added once there are enough.
func (t *together) add(ctx context.Context, head audit.Head) error {
	t.heads = append(t.heads, head)
	if len(t.heads) < abreast {
		return nil
	}
	return t.rest(ctx)
}

// rest looks up what was added.
func (t *together) rest(ctx context.Context) error {
	heads := t.heads
	t.heads = nil
	states := make([]memory.State, len(heads))
	group, within := errgroup.WithContext(ctx)
	for n, head := range heads {
		group.Go(func() (err error) {
			states[n], err = t.service.deps.Applier.State(within, head.Scope)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("read state: %w", err)
	}
	for n, head := range heads {
		t.each(head, states[n])
	}
	return nil
}
