package pipeline

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/failpoint"
	"palimpsest/pkg/events"
)

// worker runs a stage made by [Consume].
type worker struct {
	rt         *Runtime
	service    string
	source     string // of the published payloads
	point      string // stage of the failpoints
	binding    *binding
	routes     map[events.Kind]Route
	hold       int
	dispatcher *dispatcher
	meter      *meter
	log        *slog.Logger
	// handlers ends when handlers must.
	handlers context.Context //nolint:containedctx // the lifetime of a stage
}

func newWorker(rt *Runtime, service string, stage Stage, b *binding) *worker {
	w := &worker{
		rt: rt, service: service, source: sourceOf(service), point: stage.name, binding: b,
		routes: make(map[events.Kind]Route, len(stage.routes)), hold: rt.cfg.Hold, log: logger(rt.log, service, stage.name),
	}
	for _, r := range stage.routes {
		w.routes[r.kind] = r
	}
	w.dispatcher = newDispatcher(rt.cfg.Concurrency, rt.passedBy(service, b), w.work)
	if slices.ContainsFunc(stage.routes, func(r Route) bool { return r.run != nil }) {
		w.dispatcher.runs = w.workRun
	}
	w.meter = rt.newMeter(service, stage.name, w.dispatcher.len)
	return w
}

func sourceOf(service string) string { return "palimpsest/" + service }

// run works until life stops, then finishes its messages or returns them to the
// broker.
func (w *worker) run(life lifetime) {
	w.handlers = life.handlers
	endBeats := w.startBeats()
	defer endBeats()
	s := &source{binding: w.binding, log: w.log, want: w.want, accept: w.accept}
	s.run(life.stop)
	w.drain()
}

// want is the number of free slots.
func (w *worker) want(stop context.Context) int {
	var lingered bool
	for {
		free := w.hold - w.dispatcher.len()
		if free*4 >= w.hold || free > 0 && lingered {
			return free
		}
		var timer <-chan time.Time
		if free > 0 {
			timer = time.After(linger)
		}
		select {
		case <-w.dispatcher.changed:
		case <-timer:
			lingered = true
		case <-stop.Done():
			return 0
		}
	}
}

func (w *worker) accept(msg jetstream.Msg) {
	d, err := newDelivery(msg)
	if err != nil {
		w.log.Error("accept", "error", err)
		return
	}
	if w.dispatcher.hold(d) {
		w.dispatcher.enqueue(d)
	}
}

// drain finishes messages until handlers are cancelled, and returns the rest to the
// broker.
func (w *worker) drain() {
	w.dispatcher.close()
	due := func(d *delivery) bool { return d.state != parked }
	w.giveBack(w.dispatcher.release(due))
	for !w.dispatcher.idle() && w.handlers.Err() == nil {
		select {
		case <-w.dispatcher.changed:
			w.giveBack(w.dispatcher.release(due))
		case <-w.handlers.Done():
		}
	}
	w.giveBack(w.dispatcher.release((*delivery).busy))
	deadline := time.After(grace)
	for !w.dispatcher.idle() {
		select {
		case <-w.dispatcher.changed:
			w.giveBack(w.dispatcher.release((*delivery).busy))
		case <-deadline:
			w.giveBack(w.dispatcher.release(func(*delivery) bool { return false }))
			w.log.Warn("abandoned handlers that ignore cancellation")
			return
		}
	}
	w.dispatcher.wait()
}

// suspectAfter is how many deliveries of a message are normal.
func (c Config) suspectAfter() int { return max(1, c.MaxDeliveries/4) }

// work handles one message from envelope to ack.
func (w *worker) work(d *delivery) next {
	if w.handlers.Err() != nil { // nothing begins that must be cancelled
		w.nak(d, 0)
		return next{}
	}
	msg, deliveries, tries := w.dispatcher.latest(d)
	if deliveries > w.rt.cfg.suspectAfter() {
		// It may have killed the process, and the messages delivered with it would
		// die with it each time. Suspects of all stages go in random order and one
		// at a time, so that those before the cause get through.
		if !d.shuffled || !w.rt.suspects.TryLock() {
			d.shuffled = true
			return next{park: true, delay: rand.N(w.rt.cfg.RetryBase), deferred: true}
		}
		defer w.rt.suspects.Unlock()
	}
	in, m, err := w.decode(msg)
	m.meta.Delivery = tries
	ctx, span := w.rt.tracing.process(w.handlers, w.spot(), &m.meta, len(m.data))
	route, known := w.routes[m.meta.Kind]
	if err == nil && !known {
		err = &events.FieldError{Field: "type", Code: events.CodeUnknownKind, Reason: fmt.Sprintf("%s is not handled here", m.meta.Kind)}
	}
	a := attempt{
		err: err, deliveries: deliveries, tries: tries,
		age: w.rt.now().Sub(in.Time), queue: w.binding.queue, full: w.binding.queue && !w.dispatcher.mayPark(d),
	}
	o := Observation{Redelivered: deliveries > 1, Waited: a.age}
	v := w.rt.cfg.judge(a, rand.Float64())
	if v.action == actHandle {
		began := time.Now()
		o.Letters, a.err = w.handle(ctx, route, m)
		a.handled = true
		o.Duration = time.Since(began)
		if _, postponed := Postponed(a.err); a.err != nil && !postponed {
			a.strikes = w.dispatcher.strike(d, crashed(a.err))
		}
		v = w.rt.cfg.judge(a, rand.Float64())
	}
	w.dispatcher.answer(d)
	return w.conclude(ctx, d, conclusion{raw: in, in: m, route: route, attempt: a, verdict: v, seen: o, span: span})
}

// handle calls the handler and publishes its payloads. deadLetters are the codes of the
// dead letters among them.
func (w *worker) handle(ctx context.Context, route Route, m decoded) (deadLetters []string, err error) {
	err = w.rt.call(ctx, func(ctx context.Context) error {
		failpoint.Reach(w.point, failpoint.Fetched)
		payloads, err := route.handle(ctx, m)
		if err != nil {
			return err
		}
		failpoint.Reach(w.point, failpoint.Handled)
		if err := w.rt.broker.follow(ctx, m.meta, w.source, w.point, payloads); err != nil {
			return err
		}
		deadLetters = codesOf(payloads)
		return nil
	})
	return deadLetters, err
}

func codesOf(payloads []events.Payload) (deadLetters []string) {
	for _, p := range payloads {
		if letter, ok := p.(events.MessageBuried); ok {
			deadLetters = append(deadLetters, letter.Code)
		}
	}
	return deadLetters
}

func logger(log *slog.Logger, service, stage string) *slog.Logger {
	return log.With("service", service, "stage", stage)
}
