package pipeline

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// Whatever the keys, the limit, the retries and the suspects: every message is
// run until it passes, those of one key in order, never more than the limit at
// a time, and a suspect alone.
func TestLanesKeepTheirPromises(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 8).Draw(t, "limit")
		ordered := rapid.Bool().Draw(t, "ordered")
		type plan struct{ key, fails, deliveries int }
		plans := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) plan {
			return plan{
				key:        rapid.IntRange(0, 4).Draw(t, "key"),
				fails:      rapid.IntRange(0, 2).Draw(t, "fails"),
				deliveries: rapid.IntRange(1, 7).Draw(t, "deliveries"),
			}
		}), 0, 40).Draw(t, "plans")

		var mu sync.Mutex
		active, wrong := 0, ""
		passed := map[string][]uint64{}
		left := make([]int, len(plans))
		var done sync.WaitGroup
		done.Add(len(plans))
		l := newLanes(limit, ordered, new(atomic.Uint64), nil)
		l.suspectAfter = 5
		l.run = func(d *delivery) next {
			mu.Lock()
			active++
			if active > limit || d.deliveries > 5 && active > 1 {
				wrong = fmt.Sprintf("%d at a time, %d deliveries", active, d.deliveries)
			}
			mu.Unlock()
			mu.Lock()
			defer mu.Unlock()
			active--
			if left[d.seq] > 0 {
				left[d.seq]--
				return next{park: true}
			}
			passed[d.key] = append(passed[d.key], d.seq)
			done.Done()
			return next{passed: true}
		}
		var ds []*delivery
		for i, p := range plans {
			left[i] = p.fails
			ds = append(ds, &delivery{key: fmt.Sprint(p.key), seq: uint64(i), deliveries: p.deliveries})
		}
		for _, d := range ds {
			if !l.hold(d, queued) || l.hold(&delivery{key: d.key, seq: d.seq, deliveries: d.deliveries}, queued) {
				t.Fatal("held wrongly")
			}
		}
		l.enqueue(ds...)
		done.Wait()
		l.wait()
		if wrong != "" {
			t.Fatal(wrong)
		}
		for key, seqs := range passed {
			if ordered && !slices.IsSorted(seqs) {
				t.Fatalf("key %s: %v", key, seqs)
			}
		}
		if l.len() != 0 || len(l.byKey) != 0 || l.active != 0 || l.workers != 0 || len(l.ready)+len(l.suspects) != 0 {
			t.Fatalf("left over: %d held, %d lanes, %d active, %d workers", l.len(), len(l.byKey), l.active, l.workers)
		}
	})
}

// What is given back must take its successors along, or they would overtake it.
func TestReleaseTakesTheSuccessorsOfAParkedMessage(t *testing.T) {
	t.Parallel()
	l := newLanes(4, true, new(atomic.Uint64), func(d *delivery) next { return next{park: d.seq == 1, delay: 1 << 40} })
	for _, d := range []*delivery{{key: "a", seq: 1}, {key: "a", seq: 2}, {key: "a", seq: 3}} {
		l.hold(d, queued)
		l.enqueue(d)
	}
	l.wait()
	if given := l.release(func(d *delivery) bool { return d.state != parked }); len(given) != 3 {
		t.Errorf("gave back %d of 3", len(given))
	}
	l.wait()
	if l.len() != 0 || len(l.byKey) != 0 {
		t.Errorf("left over: %d held, %d lanes", l.len(), len(l.byKey))
	}
	again := &delivery{key: "a", seq: 2}
	l.hold(again, queued)
	l.enqueue(again)
	l.wait()
	if l.len() != 0 {
		t.Error("the lane is stuck")
	}
}
