package pipeline

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// desk is what the broker knows of a pinned consumer, and the gate of one of its
// replicas.
type desk struct {
	t     *testing.T
	lanes *lanes
	gate  *gate
	keys  map[uint64]string // of messages that do not have that of all others

	mu      sync.Mutex
	number  uint64
	pending map[uint64]int // deliveries of what is unacknowledged
	ran     []uint64
}

// newDesk takes what happens while a message is handled; nil for nothing.
func newDesk(t *testing.T, during func(*delivery)) *desk {
	c := &desk{t: t, pending: map[uint64]int{}}
	c.lanes = newLanes(4, true, new(atomic.Uint64), func(d *delivery) next {
		if during != nil {
			during(d)
		}
		c.mu.Lock()
		c.ran = append(c.ran, d.seq)
		c.mu.Unlock()
		c.lanes.answer(d)
		c.acknowledge(d.seq)
		return next{passed: true}
	})
	c.gate = &gate{lanes: c.lanes, ask: func(context.Context) (count, error) { return c.count(), nil }}
	return c
}

func (c *desk) count() count {
	c.mu.Lock()
	defer c.mu.Unlock()
	return count{len(c.pending), c.number}
}

func (c *desk) acknowledge(seqs ...uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, seq := range seqs {
		delete(c.pending, seq)
	}
}

// send delivers messages, to nobody that the test knows of.
func (c *desk) send(seqs ...uint64) (ds []*delivery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, seq := range seqs {
		c.number++
		c.pending[seq]++
		ds = append(ds, &delivery{key: cmp.Or(c.keys[seq], "k"), seq: seq, number: c.number, deliveries: c.pending[seq]})
	}
	return ds
}

// deliver delivers messages to the gate.
func (c *desk) deliver(pin string, seqs ...uint64) (given int) {
	for _, d := range c.send(seqs...) {
		given += len(c.gate.accept(d, pin))
	}
	return given
}

// try tries the gate once and delivers again what it gave back, which it returns,
// unless the broker is done with it.
func (c *desk) try() (again []uint64) {
	c.t.Helper()
	given, err := c.gate.try(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	for _, d := range given {
		c.mu.Lock()
		_, due := c.pending[d.seq]
		c.mu.Unlock()
		if due {
			again = append(again, d.seq)
		}
	}
	slices.Sort(again)
	c.deliver(c.gate.pin, again...)
	return again
}

// opens tries the gate until it opens, or reports that it stays shut.
func (c *desk) opens() bool {
	c.t.Helper()
	for range 2 * maxShort {
		if c.try(); c.gate.open {
			return true
		}
	}
	return false
}

func (c *desk) wantRan(want ...uint64) {
	c.t.Helper()
	c.lanes.wait()
	if !slices.Equal(c.ran, want) {
		c.t.Errorf("ran %v, want %v; unacknowledged are %v", c.ran, want, slices.Sorted(maps.Keys(c.pending)))
	}
}

// TestP2TakeOverFromTheDeadRepeatsNothing: a delivery that is no attempt counts
// towards a trial. What a dead replica held is handled as soon as it has come.
func TestP2TakeOverFromTheDeadRepeatsNothing(t *testing.T) {
	t.Parallel()
	c := newDesk(t, nil)
	c.send(1, 2)
	c.gate.expect(t.Context())
	c.deliver("b", 2, 1, 3)
	if again := c.try(); len(again) > 0 || !c.gate.open {
		t.Errorf("gave back %v, open %v", again, c.gate.open)
	}
	c.wantRan(1, 2, 3)
}

// A message that was counted as held elsewhere keeps the gate shut, whatever
// arrives in the meantime.
func TestGate(t *testing.T) {
	t.Parallel()
	c := newDesk(t, nil)
	c.send(7)
	c.deliver("a", 8, 9, 9) // 9 is delivered twice, held once
	if c.opens() || len(c.ran) > 0 {
		t.Fatalf("open with 2 of 3: %v", c.ran)
	}
	if given := c.deliver("b", 10); given != 2 {
		t.Fatalf("gave back %d under a new pin, want 2", given)
	}
	if c.deliver("b", 7, 8, 9); !c.opens() {
		t.Fatal("shut with 4 of 4")
	}
	c.deliver("b", 11)
	c.wantRan(7, 8, 9, 10, 11)
}

// TestP3GateCountsNoLateAcknowledgement: the replica before is alive and holds
// two messages. It acknowledges one that was delivered here too, and keeps the
// other: the count is met, by what is done with and without what is missing.
func TestP3GateCountsNoLateAcknowledgement(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]func(c *desk){
		"behind the first count": func(c *desk) {
			c.deliver("b", 3)
			c.try()
			c.deliver("b", 1) // its ack wait has ended there
			c.acknowledge(1)
		},
		"before the first count": func(c *desk) {
			c.deliver("b", 3, 1)
			c.acknowledge(1)
		},
		"behind a count before the pin": func(c *desk) {
			c.gate.expect(c.t.Context())
			c.deliver("b", 3, 1)
			c.acknowledge(1)
		},
		"on its way": func(c *desk) {
			sent := c.send(1)
			c.deliver("b", 3)
			c.try()
			c.acknowledge(1)
			c.gate.accept(sent[0], "b")
		},
		"of the highest": func(c *desk) {
			c.deliver("b", 3)
			c.try()
			c.deliver("b", 2)
			c.acknowledge(2)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newDesk(t, nil)
			c.send(1, 2)
			late(c)
			if got := c.count().pending; got != c.lanes.len() {
				t.Fatalf("%d unacknowledged, %d held: this is no coincidence", got, c.lanes.len())
			}
			if c.opens() {
				c.lanes.wait()
				t.Fatalf("ran %v without what is missing", c.ran)
			}
			missing := uint64(2)
			if name == "of the highest" {
				missing = 1
			}
			if c.deliver("b", missing); !c.opens() {
				t.Fatal("shut, and nothing is missing")
			}
			c.wantRan(missing, 3)
		})
	}
}

// TestP3GateIsShutWhereAMessageMayBeLost: what a request brought that ended
// without the broker's word may lack a message, which must not be overtaken; and
// one that is being acknowledged does not stand in for it.
func TestP3GateIsShutWhereAMessageMayBeLost(t *testing.T) {
	t.Parallel()
	began, finish := make(chan struct{}, 1), make(chan struct{})
	var c *desk
	c = newDesk(t, func(d *delivery) {
		if d.seq == 7 {
			c.lanes.answer(d)
			c.acknowledge(7)
			began <- struct{}{}
			<-finish
		}
	})
	if c.deliver("a", 7); !c.opens() {
		t.Fatal("shut")
	}
	<-began
	c.gate.doubt()
	c.send(8) // and nobody received it
	c.deliver("a", 9)
	if c.opens() { // 8 and 9 are counted, 7 and 9 held
		t.Fatal("open while one is acknowledged")
	}
	close(finish)
	c.lanes.wait()
	if c.opens() {
		t.Fatal("open with 1 of 2")
	}
	if c.deliver("a", 8); !c.opens() {
		t.Fatal("shut")
	}
	c.wantRan(7, 8, 9)
}

// TestP8GateOpensBesideAHungHandler: it holds up its own scope, not its
// partition, where a message may be lost and where the pin goes and comes back.
func TestP8GateOpensBesideAHungHandler(t *testing.T) {
	t.Parallel()
	began, finish := make(chan struct{}, 1), make(chan struct{})
	c := newDesk(t, func(d *delivery) {
		if d.key == "hung" && d.deliveries == 1 {
			began <- struct{}{}
			<-finish
		}
	})
	defer c.lanes.wait()
	defer close(finish)
	c.keys = map[uint64]string{1: "hung"}
	if c.deliver("a", 1); !c.opens() {
		t.Fatal("shut")
	}
	<-began
	c.gate.doubt()
	if c.deliver("a", 2); !c.opens() {
		t.Fatal("shut beside a hung handler")
	}
	for c.count().pending > 1 {
		<-c.lanes.changed
	}
	if given := c.gate.lose(); len(given) > 0 || c.lanes.len() > 0 {
		t.Fatalf("gave back %d, holds %d: the new owner waits for what is kept alive here", len(given), c.lanes.len())
	}
	if c.deliver("b", 1, 3); !c.opens() { // the ack wait of 1 has ended
		t.Fatal("shut beside a hung handler of the last pin")
	}
	for c.count().pending > 1 {
		<-c.lanes.changed
	}
	if want := []uint64{2, 3}; !slices.Equal(c.ran, want) {
		t.Errorf("ran %v, want %v", c.ran, want)
	}
}

// TestP8GateOpensBesideAParkedMessage: what waits behind a message that is to be
// tried again keeps the gate shut for nobody else.
func TestP8GateOpensBesideAParkedMessage(t *testing.T) {
	t.Parallel()
	tried, ran := make(chan uint64, 4), make(chan uint64, 4)
	l := newLanes(4, true, new(atomic.Uint64), func(d *delivery) next {
		if d.key == "down" {
			tried <- d.seq
			return next{park: true, delay: time.Hour}
		}
		ran <- d.seq
		return next{passed: true}
	})
	defer l.release(func(*delivery) bool { return false }) // and with it the timer
	g := &gate{lanes: l, ask: func(context.Context) (count, error) { return count{3, 3}, nil }}
	g.open, g.pin = true, "a"
	g.accept(&delivery{key: "down", seq: 1, number: 1, deliveries: 1}, "a")
	g.accept(&delivery{key: "down", seq: 2, number: 2, deliveries: 1}, "a")
	l.wait() // 1 is parked
	g.doubt()
	g.accept(&delivery{key: "up", seq: 3, number: 3, deliveries: 1}, "a")
	if _, err := g.try(t.Context()); err != nil || !g.open {
		t.Fatalf("open %v, %v", g.open, err)
	}
	l.wait()
	if len(tried) != 1 || len(ran) != 1 {
		t.Errorf("tried %d of the one scope, ran %d of the other", len(tried), len(ran))
	}
}

// TestP7GateLetsGoOfWhatTheBrokerIsDoneWith: a message that the last replica
// acknowledges after it was delivered here, or that the stream drops, must not
// keep the gate shut for ever.
func TestP7GateLetsGoOfWhatTheBrokerIsDoneWith(t *testing.T) {
	t.Parallel()
	c := newDesk(t, nil)
	c.deliver("a", 5, 6)
	c.acknowledge(5)
	if again := c.try(); !slices.Equal(again, []uint64{6}) || c.gate.open {
		t.Fatalf("gave back and got %v, open %v", again, c.gate.open)
	}
	if !c.opens() {
		t.Fatal("shut")
	}
	c.wantRan(6)
}

// TestP7GateGetsOverALostDelivery: what was sent here and never came, and was
// acknowledged by its last owner since, is waited for only for so long.
func TestP7GateGetsOverALostDelivery(t *testing.T) {
	t.Parallel()
	c := newDesk(t, nil)
	c.send(1)
	c.deliver("b", 2)
	c.try()
	c.send(1) // to us, who do not get it
	c.acknowledge(1)
	if !c.opens() {
		t.Fatal("shut for ever")
	}
	c.wantRan(2)
}
