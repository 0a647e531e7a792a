package sqlite

import (
	"container/list"
	"context"
	"sync"

	"palimpsest/internal/store"
)

// vectorCache keeps the vectors of the scopes that are searched in memory, or their
// sketches, the least recently used leaving first when the budget is spent.
type vectorCache struct {
	budget int64
	loads  *loads

	mu     sync.Mutex
	slabs  map[slabKey]*list.Element // of *slab
	recent *list.List
	used   int64
}

type slabKey struct {
	target  store.Target
	scopeID int64
}

// loads are those under way. They end with the store and not with the search that
// began one: a search that cannot wait would else leave the next one where it was.
type loads struct {
	ctx  context.Context //nolint:containedctx // of the store
	stop context.CancelFunc

	mu    sync.Mutex
	ended bool
	group sync.WaitGroup
	large chan struct{} // holds a value for each load of a large scope
}

// Of large scopes, which take more than this part of the budget, two are loaded at a
// time. Loads whose searches have ended would else add up.
const (
	largePart  = 16
	largeLoads = 2
)

func newLoads() *loads {
	ctx, stop := context.WithCancel(context.Background())
	return &loads{ctx: ctx, stop: stop, large: make(chan struct{}, largeLoads)}
}

// turn waits until a load of so many bytes may begin. The load calls done at its end.
func (d *vectorCache) turn(ctx context.Context, bytes int64) (done func(), err error) {
	if bytes <= d.budget/largePart {
		return func() {}, nil
	}
	select {
	case d.loads.large <- struct{}{}:
		return func() { <-d.loads.large }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// begin runs load in the background. After end it returns false.
func (l *loads) begin(load func(context.Context)) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.group.Go(func() { load(l.ctx) })
	}
	return !l.ended
}

// end stops what is under way and waits for it.
func (l *loads) end() {
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	l.stop()
	l.group.Wait()
}

func newVectorCache(budget int64, loads *loads) *vectorCache {
	return &vectorCache{budget: budget, loads: loads, slabs: map[slabKey]*list.Element{}, recent: list.New()}
}

// open returns the slab of a scope, which the first search of it begins to load. The
// slab is known before the load begins, so that no commit falls between. A load goes on
// when ctx has ended.
func (d *vectorCache) open(ctx context.Context, key slabKey, load func(context.Context, *slab) error) (*slab, error) {
	sl, first := d.find(key)
	if first && !d.loads.begin(func(ctx context.Context) {
		if sl.err = load(ctx, sl); sl.err == nil {
			sl.settle()
		} else {
			d.drop(key, sl) // the next search tries again
		}
		close(sl.ready)
	}) {
		d.drop(key, sl)
		sl.err = store.ErrClosed
		close(sl.ready)
	}
	select {
	case <-sl.ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if sl.err != nil {
		return nil, sl.err
	}
	d.account(sl)
	return sl, nil
}

// find returns the slab, loaded or not, and counts it as used; first says that the
// caller has to load it.
func (d *vectorCache) find(key slabKey) (sl *slab, first bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e, known := d.slabs[key]
	if !known {
		e = d.recent.PushFront(newSlab(key))
		d.slabs[key] = e
	}
	d.recent.MoveToFront(e)
	return e.Value.(*slab), !known //nolint:forcetypeassert // ours
}

func (d *vectorCache) drop(key slabKey, sl *slab) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e, ok := d.slabs[key]; ok && e.Value == any(sl) {
		d.remove(e)
	}
}

func (d *vectorCache) remove(e *list.Element) {
	sl := e.Value.(*slab) //nolint:forcetypeassert // ours
	d.used -= sl.size
	d.recent.Remove(e)
	delete(d.slabs, sl.key)
}

// account brings the slab's size up to date and makes room for it; a slab that
// leaves stays with those who hold it.
func (d *vectorCache) account(sl *slab) {
	sl.mu.RLock()
	size := sl.bytes()
	sl.mu.RUnlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	if e, ok := d.slabs[sl.key]; !ok || e.Value != any(sl) {
		return
	}
	d.used += size - sl.size
	sl.size = size
	for d.used > d.budget && d.recent.Len() > 0 {
		d.remove(d.recent.Back())
	}
}

// apply brings a committed change to the slab, if it is in memory. It runs in
// the order of the commits.
func (d *vectorCache) apply(key slabKey, c change) {
	d.mu.Lock()
	e, ok := d.slabs[key]
	d.mu.Unlock()
	if !ok {
		return
	}
	sl := e.Value.(*slab) //nolint:forcetypeassert // ours
	sl.mu.Lock()
	if !sl.loaded {
		sl.missed = append(sl.missed, c)
		sl.mu.Unlock()
		return
	}
	sl.set(c)
	sl.mu.Unlock()
	d.account(sl)
}
