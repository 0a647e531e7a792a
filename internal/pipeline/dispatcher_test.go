package pipeline

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// Whatever the keys, the limit and the retries: every message is run until it
// passes, never more than the limit at a time.
func TestLanesKeepTheirPromises(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 8).Draw(t, "limit")
		type plan struct{ key, fails int }
		plans := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) plan {
			return plan{
				key:   rapid.IntRange(0, 4).Draw(t, "key"),
				fails: rapid.IntRange(0, 2).Draw(t, "fails"),
			}
		}), 0, 40).Draw(t, "plans")

		var mu sync.Mutex
		active, wrong := 0, ""
		passed := map[string][]uint64{}
		left := make([]int, len(plans))
		var done sync.WaitGroup
		done.Add(len(plans))
		l := newDispatcher(limit, new(atomic.Uint64), nil)
		l.run = func(d *delivery) next {
			mu.Lock()
			active++
			if active > limit {
				wrong = fmt.Sprintf("%d at a time", active)
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
			ds = append(ds, &delivery{key: fmt.Sprint(p.key), seq: uint64(i)})
		}
		for _, d := range ds {
			if !l.hold(d) || l.hold(&delivery{key: d.key, seq: d.seq}) {
				t.Fatal("held wrongly")
			}
		}
		l.enqueue(ds...)
		done.Wait()
		l.wait()
		if wrong != "" {
			t.Fatal(wrong)
		}
		if len(left) > 0 && len(passed) == 0 {
			t.Fatal("nothing passed")
		}
		if l.len() != 0 || len(l.byKey) != 0 || l.active != 0 || l.workers != 0 || len(l.ready)+len(l.parked) != 0 {
			t.Fatalf("left over: %d held, %d queues, %d active, %d workers", l.len(), len(l.byKey), l.active, l.workers)
		}
	})
}

// TestParkedMessagesAreBoundedByProject: the trouble of one project leaves room for
// that of another.
func TestParkedMessagesAreBoundedByProject(t *testing.T) {
	t.Parallel()
	l := newDispatcher(8, new(atomic.Uint64), func(*delivery) next { return next{park: true, delay: 1 << 40} })
	for i := range 2 {
		d := &delivery{project: "a", key: fmt.Sprint(i), seq: uint64(i)}
		if !l.mayPark(d) {
			t.Fatalf("message %d may not wait", i)
		}
		l.hold(d)
		l.enqueue(d)
	}
	l.wait()
	if l.mayPark(&delivery{project: "a"}) || !l.mayPark(&delivery{project: "b"}) {
		t.Errorf("parked: %v", l.parked)
	}
	l.release(func(*delivery) bool { return false })
	if !l.mayPark(&delivery{project: "a"}) || len(l.parked) > 0 {
		t.Errorf("parked after a release: %v", l.parked)
	}
}
