package pipeline

import (
	"context"
	"slices"
	"time"
)

// gate keeps what a pinned consumer delivers from the handlers until this
// replica holds everything that is unacknowledged. The broker keeps no order
// across a take-over: what the last replica held comes back when its ack wait
// ends, behind newer messages. Once the count of unacknowledged messages equals
// what is held here, nothing is missing, and stream order can be restored.
//
// Only the goroutine that fetches uses it.
type gate struct {
	lanes *lanes
	// pending asks the broker how many messages are unacknowledged.
	pending func(context.Context) (int, error)
	pin     string // this replica's, empty where it has none
	open    bool
	waiting []*delivery
}

// gatePoll is how often a closed gate asks.
const gatePoll = 50 * time.Millisecond

// accept takes a message that was delivered under a pin. given is what must be
// given back, because the pin is new.
func (g *gate) accept(d *delivery, pin string) (given []*delivery) {
	if pin != g.pin {
		given = g.lose()
		g.pin = pin
	}
	switch {
	case !g.lanes.hold(d):
	case g.open:
		g.lanes.enqueue(d)
	default:
		g.waiting = append(g.waiting, d)
	}
	return given
}

// doubt closes the gate though the pin stays: a message may have been sent here
// that nobody received. It comes back when its ack wait ends, behind newer ones,
// which must wait for it.
func (g *gate) doubt() { g.open = false }

// lose closes the gate: the pin is somebody else's, who waits for what is held
// here. Handlers under way finish; all else is let go of and returned.
func (g *gate) lose() (given []*delivery) {
	g.pin, g.open, g.waiting = "", false, nil
	return g.lanes.release(func(d *delivery) bool { return d.state == running })
}

// shut reports whether messages wait behind the gate.
func (g *gate) shut() bool { return !g.open && len(g.waiting) > 0 }

// try opens the gate if nothing is held elsewhere. What is held is counted
// before the broker is asked: a message that arrives in between must not stand
// in for one that is missing. Neither must one that is being acknowledged, which
// counts here and no longer there, so what was let through must have been
// settled, or wait to be tried again.
//
// If the broker counts less than waits here, and nothing else is held, it is done
// with some of that: the last replica acknowledged it late, or the stream dropped
// it. Nobody can tell which, so all is given back; only the rest comes again.
func (g *gate) try(ctx context.Context) (given []*delivery, err error) {
	held, busy := g.lanes.census()
	if busy {
		return nil, nil
	}
	pending, err := g.pending(ctx)
	if err != nil {
		return nil, err
	}
	if pending < held && held == len(g.waiting) {
		g.waiting = nil
		return g.lanes.release(func(*delivery) bool { return false }), nil
	}
	if after, busy := g.lanes.census(); pending != held || busy || after != held {
		return nil, nil
	}
	slices.SortFunc(g.waiting, func(a, b *delivery) int {
		if a.seq < b.seq {
			return -1
		}
		return 1
	})
	g.lanes.enqueue(g.waiting...)
	g.open, g.waiting = true, nil
	return nil, nil
}
