package consolidator

import (
	"context"
	"sync"

	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// own is a cache of the effects that this process committed and applied, so that
// its projector need not read the store for them. A miss is looked up in the store.
// Effects that the store may have lost must be removed from it.
type own struct {
	mu      sync.Mutex
	writing map[scope.Scope]*writing
	applied map[scope.Scope]run
}

// writing is the batches of one scope that are being committed.
type writing struct {
	batches int
	done    chan struct{} // closed with the last of them
}

// run is effects of one incarnation that follow each other.
type run struct{ incarnation, first, last uint64 }

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

// wait returns when no batch of the scope is being committed any more, or ctx has
// ended: the effect that the projector hears of is mostly just being applied.
func (o *own) wait(ctx context.Context, fact scope.Scope) {
	o.mu.Lock()
	w := o.writing[fact]
	o.mu.Unlock()
	if w == nil {
		return
	}
	select {
	case <-w.done:
	case <-ctx.Done():
	}
}

// note remembers the newest effect that was applied in a scope. It forgets the
// effects before a revision that this process did not commit: the projector must look
// up that one.
func (o *own) note(e events.EffectCommitted) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.applied == nil || len(o.applied) >= maxOwn {
		o.applied = make(map[scope.Scope]run)
	}
	r, ok := o.applied[e.Scope]
	if !ok || r.incarnation != e.Incarnation || r.last+1 != e.Revision {
		r = run{incarnation: e.Incarnation, first: e.Revision}
	}
	r.last = e.Revision
	o.applied[e.Scope] = r
}

// has reports whether an effect was applied here.
func (o *own) has(h head) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	r, ok := o.applied[h.Scope]
	return ok && r.incarnation == h.Incarnation && r.first <= h.Revision && h.Revision <= r.last
}

// forget drops all that was applied: the store may have lost it.
func (o *own) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.applied)
}
