package heap

import "testing"

func TestHeapIsTrimmedOnceAfterABurst(t *testing.T) {
	t.Parallel()
	var allocated, held uint64
	trims := 0
	unmapped := 0
	trim := &trimmer{unmap: func() { unmapped++ }, free: func() {
		trims++
		held = max(held/2, 10<<20)
	}}
	measure := func() (uint64, uint64) { return allocated, held }
	look := func(more uint64, want int, what string) {
		t.Helper()
		allocated += more
		trim.look(measure)
		if trims != want {
			t.Fatalf("%s: %d trims, want %d", what, trims, want)
		}
	}
	held = 40 << 20
	look(idleGrowth-1, 0, "nothing was busy yet")
	look(quietBytes, 0, "busy")
	look(0, 1, "the first look at rest")
	look(0, 2, "the first trim returned much")
	look(0, 3, "so did the second")
	look(0, 3, "the third returned nothing")
	look(quietBytes, 3, "busy again")
	held = 12 << 20
	look(1, 4, "at rest again")
	look(1, 4, "the trim returned little")
	look(idleGrowth-3, 4, "it has allocated little since")
	was := unmapped
	look(2, 5, "idle, it has allocated enough")
	if unmapped != was {
		t.Error("the code was unmapped without a burst")
	}
}

func TestHeapMetricsAreThere(t *testing.T) {
	t.Parallel()
	if allocated, held := measured(); allocated == 0 || held == 0 {
		t.Errorf("allocated %d, held %d", allocated, held)
	}
}

// TestCodeIsUnmapped checks that code still runs after its pages were unmapped.
func TestCodeIsUnmapped(t *testing.T) {
	t.Parallel()
	unmapCode()
	if allocated, held := measured(); allocated == 0 || held == 0 {
		t.Errorf("allocated %d, held %d", allocated, held)
	}
}
