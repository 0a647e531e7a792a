package consolidator

import (
	"context"
	"sync"

	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// own remembers what this process commits and applies itself, so that its
// projector need not look. It saves work and proves nothing: what it does not
// know is looked up in the store. What the store may have lost, it must forget.
type own struct {
	mu      sync.Mutex
	writing map[scope.Scope]*writing
	applied map[scope.Scope]revision
}

// writing is the batches of one scope that are being committed.
type writing struct {
	batches int
	done    chan struct{} // closed with the last of them
}

type revision struct{ incarnation, number uint64 }

// maxOwn bounds the scopes that are remembered.
const maxOwn = 10_000

// begin says that a batch of the scope is being committed, until end is called.
func (o *own) begin(fact scope.Scope) (end func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.writing == nil {
		o.writing = make(map[scope.Scope]*writing)
	}
	w := o.writing[fact]
	if w == nil {
		w = &writing{done: make(chan struct{})}
		o.writing[fact] = w
	}
	w.batches++
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if w.batches--; w.batches == 0 {
			delete(o.writing, fact)
			close(w.done)
		}
	}
}

// wait returns when no batch of the scope is being committed any more: the
// effect that the projector hears of is mostly just being applied.
func (o *own) wait(ctx context.Context, fact scope.Scope) error {
	o.mu.Lock()
	w := o.writing[fact]
	o.mu.Unlock()
	if w == nil {
		return nil
	}
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// note remembers the newest effect that was applied in a scope.
func (o *own) note(e events.EffectCommitted) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.applied == nil || len(o.applied) >= maxOwn {
		o.applied = make(map[scope.Scope]revision)
	}
	o.applied[e.Scope] = revision{e.Incarnation, e.Revision}
}

// has reports whether an effect was applied here.
func (o *own) has(h head) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	last, ok := o.applied[h.Scope]
	return ok && last.incarnation == h.Incarnation && last.number >= h.Revision
}

// forget drops all that was applied: the store may have lost it.
func (o *own) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.applied)
}
