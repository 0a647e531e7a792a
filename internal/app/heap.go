package app

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// heapGrowth is the growth of the heap between two collections, in percent of
	// the live heap. The live heap is small, and each message makes garbage: at the
	// runtime's default of 100, collection took a sixth of the processor time under
	// a flood of messages.
	heapGrowth = 200
	// startGrowth is the same until a process serves. A start leaves much garbage:
	// at a growth of 200 what it keeps lies spread over twice as many pages for good.
	startGrowth = 25
	// trimEvery is the interval between two checks that the process is idle. An
	// idle process allocates less than quietBytes in one interval.
	trimEvery  = 10 * time.Second
	quietBytes = 32 << 20
	// worthwhile is how much a trim must return for another one to follow: pools
	// keep what they hold through one collection.
	worthwhile = 4 << 20
)

// setGrowth sets the pace of the garbage collector. GOGC takes precedence.
func setGrowth(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// LimitHeap sets the pace of the garbage collector, and the bound in MiB from
// which it works harder. GOGC and GOMEMLIMIT take precedence.
func LimitHeap(limit int) {
	setGrowth(heapGrowth)
	if limit > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(limit) << 20)
	}
}

// cacheMemory is the size in bytes of a cache that may take a part of the memory
// limit, at most usual.
func (c Config) cacheMemory(service int, usual int64) int64 {
	if c.MemoryLimit == 0 {
		return usual
	}
	return min(usual, int64(c.MemoryLimit)<<20/int64(service))
}

// trimmer returns memory to the system once a burst of work is over. The runtime
// does so by itself, but only after its next collection, which may be minutes
// away where nothing is allocated.
type trimmer struct {
	free      func()
	allocated uint64 // by the process, at the last look
	due       bool   // it was busy, or the last trim was worthwhile
}

// trimHeap looks until ctx ends.
func trimHeap(ctx context.Context) {
	t := &trimmer{free: debug.FreeOSMemory, due: true} // a start leaves garbage behind
	tick := time.NewTicker(trimEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			t.look(heapMetrics)
		case <-ctx.Done():
			return
		}
	}
}

// look trims where the process is at rest and has not been trimmed since it was
// busy.
func (t *trimmer) look(measure func() (allocated, held uint64)) {
	allocated, before := measure()
	quiet := allocated-t.allocated < quietBytes
	t.allocated = allocated
	if !quiet {
		t.due = true
		return
	}
	if !t.due {
		return
	}
	t.free()
	_, after := measure()
	t.due = after+worthwhile < before
}

// heapMetrics is how many bytes the process has allocated so far, and how many of
// its heap the system has given to it.
func heapMetrics() (allocated, held uint64) {
	samples := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"}, {Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(samples)
	for _, s := range samples[1:] {
		held += s.Value.Uint64()
	}
	return samples[0].Value.Uint64(), held
}
