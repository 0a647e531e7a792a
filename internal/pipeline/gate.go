package pipeline

import (
	"cmp"
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
// The count proves that only where all that is held here is unacknowledged. The
// last replica may be alive, and acknowledge a message that was delivered here
// too: one that it still keeps would make up for it in the count. So two counts
// are compared. Between them the broker must have delivered nothing that is not
// here, and nobody else may have acknowledged anything; and what waits here and
// was delivered before, to somebody else maybe, must have come after the first.
//
// Only the goroutine that fetches uses it.
type gate struct {
	lanes *lanes
	// ask has the broker count.
	ask     func(context.Context) (count, error)
	pin     string // this replica's, empty where it has none
	open    bool
	waiting []*delivery

	// Of a closed gate: the first count, nil before it, how many messages had been
	// settled here, and what came behind it.
	first   *count
	early   bool // it was taken before the pin came
	settled uint64
	came    []arrival
	// short is how often in a row something was delivered that is not here.
	short int
}

// count is what the broker says of a consumer at one moment.
type count struct {
	pending   int    // messages delivered and not acknowledged
	delivered uint64 // the number of the last delivery
}

// arrival is a delivery: its number, and whether it was its message's first.
type arrival struct {
	number uint64
	fresh  bool
}

const (
	// gatePoll is how often a closed gate asks.
	gatePoll = 50 * time.Millisecond
	// maxShort is how often what was delivered is waited for. After that it got
	// lost on the way, and comes again when its ack wait ends.
	maxShort = 40
)

// accept takes a message that was delivered under a pin. given is what must be
// given back, because the pin is new.
func (g *gate) accept(d *delivery, pin string) (given []*delivery) {
	if pin != g.pin {
		first, early := g.first, g.early && g.pin == ""
		if given, g.pin = g.lose(), pin; early {
			g.first = first
		}
	}
	if !g.open {
		g.came = append(g.came, arrival{d.number, d.deliveries == 1})
	}
	switch {
	case !g.lanes.hold(d, gated):
	case g.open:
		g.lanes.enqueue(d)
	default:
		g.waiting = append(g.waiting, d)
	}
	return given
}

// expect takes the first count before the pin comes. What the last replica held
// when it died is then known to have come after it, and need not be given back to
// be told from what was acknowledged.
func (g *gate) expect(ctx context.Context) {
	here := g.lanes.census()
	if now, err := g.ask(ctx); err == nil {
		g.begin(now, here)
		g.early = true
	}
}

// doubt closes the gate though the pin stays: a message may have been sent here
// that nobody received. It comes back when its ack wait ends, behind newer ones,
// which must wait for it. A gate that is closed misses it anyway.
func (g *gate) doubt() {
	if g.open {
		g.open, g.first, g.came = false, nil, nil
	}
}

// lose closes the gate: the pin is somebody else's, who waits for what is held
// here. All is let go of, and returned but for what handlers have under way: they
// finish, and their messages are acknowledged or come to the new owner when their
// ack wait ends, however long the handlers take.
func (g *gate) lose() (given []*delivery) {
	g.pin, g.open, g.waiting, g.first, g.came = "", false, nil, nil, nil
	return g.lanes.forsake()
}

// shut reports whether messages wait behind the gate.
func (g *gate) shut() bool { return !g.open && len(g.waiting) > 0 }

// try opens the gate if nothing is held elsewhere, or returns what must be given
// back so that this can be told.
//
// What is being acknowledged here counts or does not, so nothing may be, before
// the broker is asked and after. What runs or waits to be tried again counts.
func (g *gate) try(ctx context.Context) (given []*delivery, err error) {
	here := g.lanes.census()
	if here.settling {
		return nil, nil
	}
	now, err := g.ask(ctx)
	if err != nil || g.lanes.census() != here {
		return nil, err
	}
	if g.first == nil {
		g.begin(now, here)
	}
	if given := g.giveBack(g.unproven); len(given) > 0 {
		return given, nil
	}
	number, fresh := g.arrived(now.delivered)
	if number != int(now.delivered-g.first.delivered) {
		if g.short++; g.early || g.short > maxShort || now.delivered < g.first.delivered {
			g.begin(now, here)
		}
		return nil, nil
	}
	g.short = 0
	// Somebody else acknowledged a message, or the stream dropped one. Where that
	// may be why the count is met, nobody can tell which it was: all is given back,
	// and only what is still to be done comes again.
	others := g.first.pending + fresh - int(here.settled-g.settled) - now.pending
	if others != 0 && now.pending == here.held || now.pending < here.held && here.held == len(g.waiting) {
		g.begin(now, here)
		return g.giveBack(func(*delivery) bool { return true }), nil
	}
	if now.pending == here.held {
		g.pass()
	}
	return nil, nil
}

// begin takes the first count.
func (g *gate) begin(now count, here census) {
	g.first, g.early, g.settled, g.short = &now, false, here.settled, 0
	g.came = slices.DeleteFunc(g.came, func(a arrival) bool { return a.number <= now.delivered })
}

// arrived counts what came behind the first count, up to a delivery.
func (g *gate) arrived(upTo uint64) (number, fresh int) {
	for _, a := range g.came {
		if g.first.delivered < a.number && a.number <= upTo {
			number++
			if a.fresh {
				fresh++
			}
		}
	}
	return number, fresh
}

// unproven: it was somebody else's too, who may have acknowledged it before the
// first count.
func (g *gate) unproven(d *delivery) bool {
	return d.deliveries > 1 && d.number <= g.first.delivered
}

// giveBack lets go of what waits and is chosen.
func (g *gate) giveBack(chosen func(*delivery) bool) []*delivery {
	given := g.lanes.release(func(d *delivery) bool { return d.state != gated || !chosen(d) })
	g.waiting = slices.DeleteFunc(g.waiting, func(d *delivery) bool { return slices.Contains(given, d) })
	return given
}

// pass lets through what waits, in stream order.
func (g *gate) pass() {
	slices.SortFunc(g.waiting, func(a, b *delivery) int { return cmp.Compare(a.seq, b.seq) })
	g.lanes.enqueue(g.waiting...)
	g.open, g.waiting, g.first, g.came = true, nil, nil, nil
}
