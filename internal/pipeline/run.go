package pipeline

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/failpoint"
	"palimpsest/pkg/events"
)

// maxRun is how many messages of one key are handled together: enough that
// what a call costs hardly counts, few enough that others get their turn.
const maxRun = 64

// together is how many messages at the head of a key queue may be handled at once.
// One that came or was tried before goes alone: it may be why that was in vain.
func (l *dispatcher) together(q *keyQueue) int {
	if l.runs == nil {
		return 1
	}
	n := 0
	for n < min(len(q.queue), maxRun) && q.queue[n].fresh() {
		n++
	}
	return n
}

func (d *delivery) fresh() bool { return d.deliveries == 1 && d.retries == 0 && !d.alone }

// take takes the first n messages.
func (q *keyQueue) take(n int) []*delivery {
	run := slices.Clone(q.queue[:n])
	clear(q.queue[:n])
	q.queue = q.queue[n:]
	return run
}

// workRun hands over messages that were taken together. Those that did not get
// through return to the head of their key queue.
func (l *dispatcher) workRun(q *keyQueue, run []*delivery) {
	now := time.Now()
	for _, d := range run {
		d.state, d.started = running, now
	}
	l.mu.Unlock()
	passed := l.runs(run)
	l.mu.Lock()
	l.leave()
	for _, d := range run[:passed] {
		l.letGo(d)
	}
	left := make([]*delivery, 0, len(run)-passed)
	for _, d := range run[passed:] {
		if l.held[d.seq] == d {
			d.state = queued
			left = append(left, d)
		}
	}
	if len(left) > 0 {
		q.queue = append(left, q.queue...)
	}
	if passed > 0 {
		l.passed.Add(uint64(passed))
		l.unparkAll()
	}
	l.proceed(q)
}

// workRun handles messages of one key together, from envelopes to acks. None of
// them was delivered before, so it checks only whether each can be read. A message
// that cannot be read, or is of another kind, ends the run. If the handler fails,
// each message is handled alone and gets its own verdict.
func (w *worker) workRun(run []*delivery) (passed int) {
	route, in := w.readRun(run)
	if len(in) < 2 || w.handlers.Err() != nil {
		run[0].alone = true
		return 0
	}
	run = run[:len(in)]
	began := time.Now()
	ctxs, spans := w.rt.tracing.run(w.handlers, w.spot(), len(in), func(i int) (*events.Meta, int) { return &in[i].meta, len(in[i].data) })
	ctx := ctxs[len(ctxs)-1]
	err := w.handleRun(ctx, route, in)
	took := time.Since(began)
	if err != nil {
		w.dispatcher.again(run)
		endRun(spans, Observation{Verdict: string(actWait)})
		w.log.DebugContext(ctx, "run failed", "messages", len(run), "error", err)
		return 0
	}
	o := Observation{Verdict: string(actAck), Duration: took / time.Duration(len(run))}
	for _, m := range in {
		o.Waited = began.Sub(m.meta.Arrived)
		w.meter.record(o)
	}
	endRun(spans, o)
	w.dispatcher.answer(run...)
	w.ackRun(run)
	return len(run)
}

// again makes each message of a failed run go alone. That is another attempt, and
// counts as one for the handler: the payloads of the first may not have been
// published.
func (l *dispatcher) again(run []*delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range run {
		d.alone = true
		d.retries++
	}
}

// readRun decodes the first messages of a run that one route takes.
func (w *worker) readRun(run []*delivery) (Route, []decoded) {
	var route Route
	in := make([]decoded, 0, len(run))
	for _, d := range run {
		msg, _, tries := w.dispatcher.latest(d)
		_, m, err := w.decode(msg)
		if err != nil {
			break
		}
		m.meta.Delivery = tries
		if len(in) == 0 {
			route = w.routes[m.meta.Kind]
		}
		if route.run == nil || m.meta.Kind != route.kind {
			break
		}
		in = append(in, m)
	}
	return route, in
}

// handleRun calls the handler and publishes its payloads, with the last message as
// their cause.
func (w *worker) handleRun(ctx context.Context, route Route, in []decoded) error {
	return w.rt.call(ctx, func(ctx context.Context) error {
		failpoint.Reach(w.point, failpoint.Fetched)
		payloads, err := route.run(ctx, in)
		if err != nil {
			return err
		}
		failpoint.Reach(w.point, failpoint.Handled)
		return w.rt.broker.follow(ctx, in[len(in)-1].meta, w.source, w.point, payloads)
	})
}

// ackRun acks messages together. The broker takes a connection's acks in order,
// so that the answer to the last one stands for all. Should they get lost, the
// messages come again, as after any ack.
func (w *worker) ackRun(run []*delivery) {
	last := len(run) - 1
	for _, d := range run[:last] {
		msg, _, _ := w.dispatcher.latest(d)
		if err := msg.Ack(); err != nil && !errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
			w.log.Warn("acknowledge a message", "sequence", d.seq, "error", err)
		}
	}
	w.ack(run[last])
}
