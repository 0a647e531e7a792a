package sqlite

import (
	"container/list"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"

	"palimpsest/internal/store"
)

// vectorCache keeps the vectors of the scopes that are searched in memory, the least
// recently used leaving first when the budget is spent.
type vectorCache struct {
	budget int64

	mu     sync.Mutex
	slabs  map[slabKey]*list.Element // of *slab
	recent *list.List
	used   int64
}

type slabKey struct {
	target  store.Target
	scopeID int64
}

// slab is the vectors of one scope and target, contiguous. Rows are in no order.
type slab struct {
	key  slabKey
	once sync.Once
	err  error

	mu     sync.RWMutex
	loaded bool
	missed []change // commits during the load
	rows   []int64
	values []float32
	at     map[int64]int // row → index
	size   int64         // bytes counted against the budget; guarded by vectorCache.mu
}

// change is a vector that was stored, or dropped where values is nil.
type change struct {
	row    int64
	values []float32
}

func newVectorCache(budget int64) *vectorCache {
	return &vectorCache{budget: budget, slabs: map[slabKey]*list.Element{}, recent: list.New()}
}

// open returns the slab of a scope, loading it on first use. The slab is known
// before the load begins, so that no commit falls between.
func (d *vectorCache) open(ctx context.Context, key slabKey, load func(context.Context, *slab) error) (*slab, error) {
	for {
		sl := d.find(key)
		sl.once.Do(func() {
			if sl.err = load(ctx, sl); sl.err == nil {
				sl.settle()
			}
		})
		if sl.err == nil {
			d.account(sl)
			return sl, nil
		}
		d.drop(key, sl)
		// The load may have ended with the patience of another caller.
		if ctx.Err() != nil || !errors.Is(sl.err, context.Canceled) && !errors.Is(sl.err, context.DeadlineExceeded) {
			return nil, sl.err
		}
	}
}

// find returns the slab, loaded or not, and counts it as used.
func (d *vectorCache) find(key slabKey) *slab {
	d.mu.Lock()
	defer d.mu.Unlock()
	e, ok := d.slabs[key]
	if !ok {
		e = d.recent.PushFront(&slab{key: key, at: map[int64]int{}})
		d.slabs[key] = e
	}
	d.recent.MoveToFront(e)
	return e.Value.(*slab) //nolint:forcetypeassert // ours
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
	size := int64(cap(sl.values))*4 + int64(len(sl.rows))*32
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

// settle ends the load. A change from before the load is in the rows already;
// to make it again changes nothing, because it is followed by those after it.
func (sl *slab) settle() {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	for _, c := range sl.missed {
		sl.set(c)
	}
	sl.missed, sl.loaded = nil, true
}

func (sl *slab) set(c change) {
	i, known := sl.at[c.row]
	switch {
	case c.values == nil && known:
		sl.cut(i)
	case c.values == nil:
	case known:
		n := len(c.values)
		copy(sl.values[i*n:(i+1)*n], c.values)
	default:
		sl.add(c.row, c.values)
	}
}

func (sl *slab) add(row int64, values []float32) {
	sl.at[row] = len(sl.rows)
	sl.rows = append(sl.rows, row)
	sl.values = append(sl.values, values...)
}

// cut moves the last vector into the gap.
func (sl *slab) cut(i int) {
	last := len(sl.rows) - 1
	n := len(sl.values) / len(sl.rows)
	delete(sl.at, sl.rows[i])
	if i != last {
		sl.rows[i] = sl.rows[last]
		sl.at[sl.rows[i]] = i
		copy(sl.values[i*n:(i+1)*n], sl.values[last*n:])
	}
	sl.rows = sl.rows[:last]
	sl.values = sl.values[:last*n]
}

// parallelFrom is the number of values from which a scan is worth being split.
const parallelFrom = 1 << 21

// scan appends every row with its similarity to query.
func (sl *slab) scan(found *scan, query []float32) {
	sl.mu.RLock()
	defer sl.mu.RUnlock()
	base, n := len(found.scores), len(sl.rows)
	found.rows = append(found.rows, sl.rows...)
	found.scores = slices.Grow(found.scores, n)[:base+n]
	scores := found.scores[base:]
	parts := 1
	if len(sl.values) >= parallelFrom {
		parts = runtime.GOMAXPROCS(0)
	}
	var wg sync.WaitGroup
	for p := range parts - 1 {
		wg.Go(func() { sl.scanPart(scores, p*n/parts, (p+1)*n/parts, query) })
	}
	sl.scanPart(scores, (parts-1)*n/parts, n, query)
	wg.Wait()
}

func (sl *slab) scanPart(scores []float32, from, to int, query []float32) {
	n := len(query)
	for i := from; i < to; i++ {
		scores[i] = dot(query, sl.values[i*n:(i+1)*n])
	}
}
