// Package heap sets the pace of the garbage collector, and returns memory to the
// system after a burst of work.
package heap

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// serveGrowth is the growth of the heap between two collections, in percent of
	// the live heap. The live heap is small, and each message makes garbage: at the
	// runtime's default of 100, collection took a sixth of the processor time under
	// a flood of messages.
	serveGrowth = 200
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
	// idleGrowth is how much an idle process allocates between two trims. At
	// serveGrowth its heap would grow to three times what lives.
	idleGrowth = 8 << 20
)

// setGrowth sets the pace of the garbage collector. GOGC takes precedence.
func setGrowth(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// Start sets the pace for a start, until [Limit] is called. GOGC takes precedence.
func Start() { setGrowth(startGrowth) }

// Limit sets the pace of the garbage collector, and the bound in MiB from
// which it works harder. GOGC and GOMEMLIMIT take precedence.
func Limit(limit int) {
	setGrowth(serveGrowth)
	if limit > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(limit) << 20)
	}
}

// trimmer returns memory to the system once a burst of work is over. The runtime
// does so by itself, but only after its next collection, which may be minutes
// away where nothing is allocated.
type trimmer struct {
	free      func()
	allocated uint64 // by the process, at the last look
	trimmed   uint64 // the same, at the last trim
	due       bool   // it was busy, or the last trim was worthwhile
	unmap     func() // after a burst
}

// Trim returns memory to the system after each burst of work, until ctx ends.
func Trim(ctx context.Context) {
	t := &trimmer{free: debug.FreeOSMemory, unmap: unmapCode, due: true} // a start leaves garbage behind
	tick := time.NewTicker(trimEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			t.look(measured)
		case <-ctx.Done():
			return
		}
	}
}

// look trims where the process is at rest, and has not been trimmed since it was busy
// or since it allocated idleGrowth.
func (t *trimmer) look(measure func() (allocated, held uint64)) {
	allocated, before := measure()
	quiet := allocated-t.allocated < quietBytes
	t.allocated = allocated
	if !quiet {
		t.due = true
		return
	}
	if !t.due && allocated-t.trimmed < idleGrowth {
		return
	}
	if t.due {
		t.unmap()
	}
	t.free()
	t.trimmed = allocated
	_, after := measure()
	t.due = after+worthwhile < before
}

// measured is how many bytes the process has allocated so far, and how many of
// its heap the system has given to it.
func measured() (allocated, held uint64) {
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
