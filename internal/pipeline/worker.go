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
	*keeper
	routes map[events.Kind]Route
	gate   *gate // of a pinned consumer
	hold   int
}

func newWorker(rt *Runtime, service string, stage Stage, b *binding) *worker {
	w := &worker{routes: make(map[events.Kind]Route, len(stage.routes)), hold: rt.cfg.Hold}
	for _, r := range stage.routes {
		w.routes[r.kind] = r
	}
	w.keeper = newKeeper(rt, service, stage.name, b, newLanes(rt.cfg.Concurrency, b.pinned, rt.passedBy(service, b), w.work))
	w.lanes.suspectAfter = rt.cfg.suspectAfter()
	if slices.ContainsFunc(stage.routes, func(r Route) bool { return r.run != nil }) {
		w.lanes.runs = w.workRun
	}
	if b.pinned {
		w.gate = &gate{lanes: w.lanes, ask: w.count}
	}
	return w
}

func (w *worker) count(ctx context.Context) (count, error) {
	ctx, cancel := context.WithTimeout(ctx, pullExpiry)
	defer cancel()
	info, err := w.binding.consumer.Info(ctx)
	if err != nil {
		return count{}, fmt.Errorf("pipeline: ask for unacknowledged messages: %w", err)
	}
	return count{pending: info.NumAckPending, delivered: info.Delivered.Consumer}, nil
}

// run works until life stops, then finishes or gives back what it holds.
func (w *worker) run(life lifetime) {
	w.handlers = life.handlers
	endBeats := w.startBeats()
	defer endBeats()
	s := &source{binding: w.binding, log: w.log, want: w.want, accept: w.accept, lost: w.lostPin, doubt: w.doubt, idle: w.tryGate}
	s.run(life.stop)
	w.drain()
}

// want is the number of free slots. A pinned stage fetches always: only pull
// requests renew its pin, and what the last replica held must find room.
func (w *worker) want(stop context.Context) int {
	if w.gate != nil {
		if w.gate.pin == "" {
			w.gate.expect(stop)
		}
		return pinnedBatch
	}
	var lingered bool
	for {
		free := w.hold - w.lanes.len()
		if free*4 >= w.hold || free > 0 && lingered {
			return free
		}
		var timer <-chan time.Time
		if free > 0 {
			timer = time.After(linger)
		}
		select {
		case <-w.lanes.changed:
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
	if w.gate != nil {
		w.giveBack(w.gate.accept(d, msg.Headers().Get("Nats-Pin-Id")))
		return
	}
	if w.lanes.hold(d, queued) {
		w.lanes.enqueue(d)
	}
}

func (w *worker) lostPin() {
	if w.gate != nil {
		w.giveBack(w.gate.lose())
	}
}

func (w *worker) doubt() {
	if w.gate != nil {
		w.gate.doubt()
	}
}

// tryGate reports whether the gate has to be tried again.
func (w *worker) tryGate(stop context.Context) bool {
	if w.gate == nil || stop.Err() != nil {
		return false
	}
	if w.gate.pin == "" {
		// Whoever has the pin waits for what failed here since it moved.
		w.giveBack(w.lanes.forsake())
	}
	if !w.gate.shut() {
		return false
	}
	given, err := w.gate.try(stop)
	if err != nil && stop.Err() == nil {
		w.log.Warn("open gate", "error", err)
	}
	w.giveBack(given)
	return w.gate.shut()
}

// drain finishes what can be finished before handlers are cancelled, and gives
// back the rest.
func (w *worker) drain() {
	w.lanes.close()
	due := func(d *delivery) bool { return d.state != parked && d.state != gated }
	w.giveBack(w.lanes.release(due))
	for !w.lanes.idle() && w.handlers.Err() == nil {
		select {
		case <-w.lanes.changed:
			w.giveBack(w.lanes.release(due))
		case <-w.handlers.Done():
		}
	}
	w.giveBack(w.lanes.release((*delivery).busy))
	deadline := time.After(grace)
	for !w.lanes.idle() {
		select {
		case <-w.lanes.changed:
			w.giveBack(w.lanes.release((*delivery).busy))
		case <-deadline:
			w.giveBack(w.lanes.release(func(*delivery) bool { return false }))
			w.log.Warn("gave up handlers that ignore cancellation")
			w.unpin()
			return
		}
	}
	w.lanes.wait()
	w.unpin()
}

// unpin lets another replica take over at once.
func (w *worker) unpin() {
	if w.gate == nil || w.gate.pin == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	stream, err := w.rt.js.Stream(ctx, w.binding.stream)
	if err == nil {
		err = stream.UnpinConsumer(ctx, w.binding.name, PinGroup)
	}
	if err != nil {
		w.log.Debug("unpin", "error", err) // the pin's TTL does it, later
	}
}

// work handles one message from envelope to ack.
func (w *worker) work(d *delivery) next {
	if w.handlers.Err() != nil { // nothing begins that must be cancelled
		w.nak(d, 0)
		return next{}
	}
	msg, deliveries, tries := w.lanes.latest(d)
	in, m, err := w.decode(msg)
	if buried, failed := w.wasBuried(w.handlers, in.Sequence, deliveries); buried {
		w.lanes.answer(d)
		w.end(d, "buried before")
		return next{}
	} else if failed != nil {
		err = failed
	}
	m.meta.Delivery = tries
	ctx, span := w.rt.tracing.process(w.handlers, w.keeper, &m)
	route, known := w.routes[m.meta.Kind]
	if err == nil && !known {
		err = &events.FieldError{Field: "type", Code: events.CodeUnknownKind, Reason: fmt.Sprintf("%s is not handled here", m.meta.Kind)}
	}
	a := attempt{
		err: err, deliveries: deliveries, tries: tries,
		age: w.rt.now().Sub(in.Time), ordered: w.gate != nil,
	}
	o := Observation{Kind: m.meta.Kind, Redelivered: deliveries > 1, Waited: a.age}
	v := w.summon(&a, in)
	if v.action == actHandle {
		began := time.Now()
		o.Letters, a.err = w.handle(ctx, route, m)
		a.handled = true
		o.Duration = time.Since(began)
		w.dismiss(&a, in)
		if _, postponed := Postponed(a.err); a.err != nil && !postponed {
			a.strikes = w.lanes.strike(d, crashed(a.err))
		}
		v = w.rt.cfg.judge(a, rand.Float64())
	}
	w.lanes.answer(d)
	return w.conclude(ctx, d, conclusion{raw: in, in: m, route: route, attempt: a, verdict: v, seen: o, span: span})
}

// handle calls the handler and publishes what follows. letters are the codes of
// the dead letters among it.
func (w *worker) handle(ctx context.Context, route Route, m decoded) (letters []string, err error) {
	err = w.call(ctx, func(ctx context.Context) error {
		failpoint.Reach(w.point, failpoint.Fetched)
		payloads, err := route.handle(ctx, m)
		if err != nil {
			return err
		}
		failpoint.Reach(w.point, failpoint.Handled)
		if err := w.rt.broker.follow(ctx, m.meta, w.source, w.point, payloads); err != nil {
			return err
		}
		letters = codesOf(payloads)
		return nil
	})
	return letters, err
}

func codesOf(payloads []events.Payload) (letters []string) {
	for _, p := range payloads {
		if letter, ok := p.(events.MessageBuried); ok {
			letters = append(letters, letter.Code)
		}
	}
	return letters
}

func logger(log *slog.Logger, service, stage string) *slog.Logger {
	return log.With("service", service, "stage", stage)
}
