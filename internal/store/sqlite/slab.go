package sqlite

import (
	"runtime"
	"slices"
	"sync"
)

// slab is the vectors of one scope and target, contiguous, or in a large scope their
// sketches. Rows are in no order.
type slab struct {
	key   slabKey
	ready chan struct{} // closed when the load has ended
	err   error         // of the load

	mu       sync.RWMutex
	loaded   bool
	missed   []change // commits during the load
	rows     []int64
	values   []float32
	sketcher *sketcher // nil for a slab of vectors
	sketches []uint64
	at       map[int64]int // row → index
	size     int64         // bytes counted against the budget; guarded by vectorCache.mu
}

// change is a vector that was stored, or dropped where values is nil.
type change struct {
	row    int64
	values []float32
}

func newSlab(key slabKey) *slab {
	return &slab{key: key, ready: make(chan struct{}), at: map[int64]int{}}
}

// room prepares an empty slab for so many vectors: for sketches where the vectors would
// take more than half of the budget.
func (sl *slab) room(vectors int64, dimensions int, budget int64) {
	sl.rows = make([]int64, 0, vectors)
	if bytes := vectors * int64(dimensions) * 4; bytes <= budget/2 {
		sl.values = make([]float32, 0, vectors*int64(dimensions))
		return
	}
	sl.sketcher = newSketcher(dimensions)
	sl.sketches = make([]uint64, 0, vectors*int64(sl.sketcher.words()))
}

// bytes is what the slab takes in memory.
func (sl *slab) bytes() int64 {
	return int64(cap(sl.values))*4 + int64(cap(sl.sketches))*8 + int64(len(sl.rows))*32
}

// settle ends the load. A change from before the load is in the rows already;
// to make it again changes nothing, because it is followed by those after it.
func (sl *slab) settle() {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if 2*len(sl.values) < cap(sl.values) {
		sl.values = slices.Clone(sl.values)
	}
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
		sl.write(i, c.values)
	default:
		sl.add(c.row, c.values)
	}
}

func (sl *slab) add(row int64, values []float32) {
	i := len(sl.rows)
	sl.at[row] = i
	sl.rows = append(sl.rows, row)
	if sl.sketcher == nil {
		sl.values = append(sl.values, values...)
		return
	}
	n := sl.sketcher.words()
	sl.sketches = slices.Grow(sl.sketches, n)[:(i+1)*n]
	sl.write(i, values)
}

func (sl *slab) write(i int, values []float32) {
	if sl.sketcher == nil {
		copy(sl.values[i*len(values):], values)
		return
	}
	n := sl.sketcher.words()
	sl.sketcher.sketch(sl.sketches[i*n:(i+1)*n], values)
}

// cut moves the last vector into the gap.
func (sl *slab) cut(i int) {
	last := len(sl.rows) - 1
	delete(sl.at, sl.rows[i])
	if i != last {
		sl.rows[i] = sl.rows[last]
		sl.at[sl.rows[i]] = i
	}
	sl.values = cutAt(sl.values, i, last)
	sl.sketches = cutAt(sl.sketches, i, last)
	sl.rows = sl.rows[:last]
}

// cutAt moves the last of so many equal parts and one more to the place of part i.
func cutAt[T any](list []T, i, last int) []T {
	n := len(list) / (last + 1)
	copy(list[i*n:(i+1)*n], list[last*n:])
	return list[:last*n]
}

// parallelFrom is the number of 32-bit values from which a scan is worth being split.
const parallelFrom = 1 << 21

// split calls part with equal shares of n rows: together where the slab is large.
func (sl *slab) split(part func(from, to int)) {
	n, parts := len(sl.rows), 1
	if len(sl.values)+2*len(sl.sketches) >= parallelFrom {
		parts = min(runtime.GOMAXPROCS(0), runtime.NumCPU())
	}
	var wg sync.WaitGroup
	for p := range parts - 1 {
		wg.Go(func() { part(p*n/parts, (p+1)*n/parts) })
	}
	part((parts-1)*n/parts, n)
	wg.Wait()
}

// scan appends every row of a slab of vectors with its similarity to query.
func (sl *slab) scan(found *scan, query []float32) {
	sl.mu.RLock()
	defer sl.mu.RUnlock()
	base, n := len(found.scores), len(sl.rows)
	found.rows = append(found.rows, sl.rows...)
	found.scores = slices.Grow(found.scores, n)[:base+n]
	scores := found.scores[base:]
	sl.split(func(from, to int) {
		d := len(query)
		for i := from; i < to; i++ {
			scores[i] = dot(query, sl.values[i*d:(i+1)*d])
		}
	})
}

// near returns the rows of a slab of sketches that differ from a query in at least so
// many bits: the n with the least difference, and all others of the same, the most
// similar by estimate first. more is from how many bits on the others differ.
func (sl *slab) near(query *probe, least, n int, unlike []uint16) (rows []int64, more int, buffer []uint16) {
	sl.mu.RLock()
	defer sl.mu.RUnlock()
	words := len(query.sketch)
	unlike = slices.Grow(unlike[:0], len(sl.rows))[:len(sl.rows)]
	sl.split(func(from, to int) { differences(unlike[from:to], sl.sketches[from*words:to*words], query.sketch) })
	counts := make([]int, words*wordBits+1)
	for _, bits := range unlike {
		counts[bits]++
	}
	most, count := least, 0
	for ; most < len(counts); most++ {
		if count += counts[most]; count >= n {
			break
		}
	}
	list := make([]candidate, 0, count)
	for i, bits := range unlike {
		if int(bits) >= least && int(bits) <= most {
			list = append(list, candidate{query.estimate(sl.sketches[i*words : (i+1)*words]), sl.rows[i]})
		}
	}
	slices.SortFunc(list, compareCandidates)
	rows = make([]int64, len(list))
	for i, c := range list {
		rows[i] = c.row
	}
	return rows, most + 1, unlike
}
