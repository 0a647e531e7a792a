package pipeline

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// dispatcher holds the messages of one stage and runs them: those of one key in the
// order they came, different keys in parallel, at most limit at a time. Workers
// exist only while there is work.
type dispatcher struct {
	limit int
	// parkedMost bounds the messages of one project that wait here to be tried
	// again. Further ones go back to the stream, so that the trouble of one
	// project takes no slot of another.
	parkedMost int
	// run handles a message and says how to go on.
	run func(*delivery) next
	// runs, where set, handles messages of one key together and says how many of
	// the first got through; each of the others has to be run. Where none did, it
	// has set the first one's alone.
	runs func([]*delivery) (passed int)
	// passed counts the messages that got through, in all stages that depend on
	// the same.
	passed *atomic.Uint64
	// changed holds a token whenever messages were let go of.
	changed chan struct{}

	mu      sync.Mutex
	held    map[uint64]*delivery
	byKey   map[string]*keyQueue
	ready   []*keyQueue // those with a message to run, none of it running
	workers int
	active  int            // messages being run
	parked  map[string]int // by project
	closed  bool           // draining: nothing is retried here any more
	workerG sync.WaitGroup
}

type keyQueue struct {
	key   string
	queue []*delivery
	busy  bool // in ready or running
}

// next is how to go on with a message that was run.
type next struct {
	park   bool // keep it and run it again after delay
	delay  time.Duration
	passed bool // it got through
	// deferred: it was not tried, and waits until it may be.
	deferred bool
}

func newDispatcher(limit int, passed *atomic.Uint64, run func(*delivery) next) *dispatcher {
	return &dispatcher{
		limit: limit, parkedMost: max(1, limit/4), passed: passed, run: run, changed: make(chan struct{}, 1),
		held: make(map[uint64]*delivery), byKey: make(map[string]*keyQueue), parked: make(map[string]int),
	}
}

// hold takes responsibility for a message without running it yet. It reports
// false where the message is held already: then only its newer delivery is
// kept, to ack.
func (l *dispatcher) hold(d *delivery) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := l.held[d.seq]; ok {
		known.msg, known.deliveries = d.msg, d.deliveries
		return false
	}
	l.held[d.seq], d.state = d, queued
	return true
}

// enqueue lets held messages run, in the order given.
func (l *dispatcher) enqueue(ds ...*delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range ds {
		l.push(d, false)
	}
}

func (l *dispatcher) push(d *delivery, front bool) {
	d.state = queued
	q := l.byKey[d.key]
	if q == nil {
		q = &keyQueue{key: d.key}
		l.byKey[d.key] = q
	}
	if front {
		q.queue = append([]*delivery{d}, q.queue...)
	} else {
		q.queue = append(q.queue, d)
	}
	if !q.busy {
		l.makeReady(q)
	}
}

func (l *dispatcher) makeReady(q *keyQueue) {
	q.busy = true
	l.ready = append(l.ready, q)
	if l.workers < l.limit {
		l.workers++
		l.workerG.Go(l.work)
	}
}

// work runs ready key queues in turns, one message at a time or one run, until none
// is left.
func (l *dispatcher) work() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for q := l.pick(); q != nil; q = l.pick() {
		if n := l.together(q); n > 1 {
			l.workRun(q, q.take(n))
			continue
		}
		d := q.queue[0]
		q.queue[0] = nil
		q.queue = q.queue[1:]
		d.state, d.started = running, time.Now()
		l.mu.Unlock()
		n := l.run(d)
		l.mu.Lock()
		l.settle(q, d, n)
	}
	l.workers--
}

// settle goes on after a message was run.
func (l *dispatcher) settle(q *keyQueue, d *delivery, n next) {
	l.leave()
	if n.passed {
		l.passed.Add(1)
		l.unparkAll()
	}
	if n.park && l.held[d.seq] == d {
		if !n.deferred {
			d.retries++
		}
		l.park(d, n.delay)
	} else {
		l.letGo(d)
	}
	l.proceed(q)
}

// proceed lets the next message of a key queue run.
func (l *dispatcher) proceed(q *keyQueue) {
	if len(q.queue) > 0 {
		q.busy = false
		l.makeReady(q)
		return
	}
	delete(l.byKey, q.key)
}

func (l *dispatcher) letGo(d *delivery) {
	if l.held[d.seq] == d {
		delete(l.held, d.seq)
	}
	l.signal()
}

func (l *dispatcher) signal() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// pick takes a key queue to run the head of, nil where none is ready. Key queues that were
// emptied by a release are dropped.
func (l *dispatcher) pick() *keyQueue {
	for len(l.ready) > 0 {
		q := l.ready[0]
		l.ready[0] = nil
		if l.ready = l.ready[1:]; len(q.queue) > 0 {
			l.active++
			return q
		}
		delete(l.byKey, q.key)
	}
	return nil
}

// leave ends what pick began.
func (l *dispatcher) leave() {
	l.active--
	l.signal()
}

// mayPark reports whether the project of d may keep another message here.
func (l *dispatcher) mayPark(d *delivery) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.parked[d.project] < l.parkedMost
}

func (l *dispatcher) park(d *delivery, delay time.Duration) {
	d.state = parked
	l.parked[d.project]++
	if l.closed {
		l.signal() // the drain takes it
	}
	d.timer = time.AfterFunc(delay, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.unpark(d)
	})
}

// unpark puts a parked message at the head of its key queue.
func (l *dispatcher) unpark(d *delivery) {
	if d.state != parked || l.held[d.seq] != d || l.closed {
		return
	}
	d.timer.Stop()
	l.unparked(d)
	l.push(d, true)
}

func (l *dispatcher) unparked(d *delivery) {
	if l.parked[d.project]--; l.parked[d.project] <= 0 {
		delete(l.parked, d.project)
	}
}

// unparkAll retries at once what nothing but an outage kept: something got
// through, so whatever was down is up.
func (l *dispatcher) unparkAll() {
	if len(l.parked) == 0 { // whatever gets through asks
		return
	}
	for _, d := range l.held {
		if d.state == parked && d.strikes == 1 {
			l.unpark(d)
		}
	}
}

// strike counts a failure of d, one that is its own or may be others', and
// returns its strikes.
func (l *dispatcher) strike(d *delivery, own bool) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if passed := l.passed.Load(); own || d.strikes == 0 || passed > d.failedAt {
		d.strikes, d.failedAt = d.strikes+1, passed
	}
	return d.strikes
}

func (l *dispatcher) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.held)
}

// idle reports that no message is held and no handler runs for a released one.
func (l *dispatcher) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.held) == 0 && l.active == 0
}

// each calls f for every held message, under the lock.
func (l *dispatcher) each(f func(d *delivery)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range l.held {
		f(d)
	}
}

// release drops all held messages for which keep returns false, and returns them. It
// drops running messages too; their handlers go on, and their results are ignored.
func (l *dispatcher) release(keep func(*delivery) bool) []*delivery {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []*delivery
	for _, d := range l.held {
		if keep(d) {
			continue
		}
		if d.timer != nil {
			d.timer.Stop()
		}
		if d.state == parked {
			l.unparked(d)
		}
		if q := l.byKey[d.key]; q != nil {
			q.remove(d)
		}
		delete(l.held, d.seq)
		out = append(out, d)
	}
	if len(out) > 0 {
		l.signal()
	}
	return out
}

func (q *keyQueue) remove(d *delivery) {
	for i, other := range q.queue {
		if other == d {
			q.queue = append(q.queue[:i:i], q.queue[i+1:]...)
			return
		}
	}
}

// close stops retries in place. Messages that wait for one can be released.
func (l *dispatcher) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}

// wait returns when no worker is left.
func (l *dispatcher) wait() { l.workerG.Wait() }

// latest is the newest delivery of a message, and its attempt's number.
func (l *dispatcher) latest(d *delivery) (msg jetstream.Msg, deliveries, tries int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return d.msg, d.deliveries, d.tries()
}

// answer marks messages whose verdict is about to be sent to the broker.
func (l *dispatcher) answer(ds ...*delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range ds {
		d.state = settling
	}
}
