package pipeline

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/trace"

	"palimpsest/internal/failpoint"
	"palimpsest/pkg/events"
)

// startBeats reports all held messages as in progress, until end is called.
func (w *worker) startBeats() (end func()) {
	var wg sync.WaitGroup
	done := make(chan struct{})
	wg.Go(func() {
		ticker := time.NewTicker(beatInterval)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				w.beat()
			}
		}
	})
	return func() { close(done); wg.Wait() }
}

func (w *worker) beat() {
	var held []jetstream.Msg
	w.dispatcher.each(func(d *delivery) {
		// A handler past its deadline has lost its claim: the message is
		// delivered again, to a replica that is not stuck.
		if d.state != running || time.Since(d.started) < w.rt.cfg.HandlerTimeout {
			held = append(held, d.msg)
		}
	})
	for _, msg := range held {
		if err := msg.InProgress(); err != nil && !errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
			w.log.Debug("report that work is in progress", "error", err)
		}
	}
}

func (w *worker) decode(msg jetstream.Msg) (events.Raw, decoded, error) {
	in, err := raw(msg, w.binding.streamID)
	if err != nil {
		return in, decoded{}, err
	}
	meta, data, err := events.Decode(in)
	return in, decoded{meta: meta, data: data}, err
}

// conclusion is a judged attempt.
type conclusion struct {
	raw     events.Raw
	in      decoded
	route   Route
	attempt attempt
	verdict verdict
	seen    Observation
	span    trace.Span // of the attempt; nil where nothing is traced
}

// conclude carries the verdict out, and ends the attempt's span, which ctx has.
func (w *worker) conclude(ctx context.Context, d *delivery, c conclusion) next {
	v := c.verdict
	if w.handlers.Err() != nil && (v.action == actNak || v.action == actRenew || v.action == actWait || v.code == events.CodePoison && c.attempt.handled) {
		v = verdict{action: actNak} // cancelled, not failed
	}
	var p *panicked
	if c.seen.Panicked = errors.As(c.attempt.err, &p); c.seen.Panicked {
		w.log.ErrorContext(ctx, "handler panicked", "id", c.in.meta.ID, "panic", p.value, "stack", string(p.stack))
	}
	if v.action == actBury {
		err := w.bury(ctx, d, c)
		if err != nil {
			w.log.ErrorContext(ctx, "bury", "id", c.in.meta.ID, "sequence", c.raw.Sequence, "error", err)
			delay := backoff(c.attempt.tries, w.rt.cfg.RetryBase, w.rt.cfg.RetryMax, 0.5)
			v = verdict{action: actNak, delay: delay}
		}
	}
	c.seen.Verdict, c.seen.Code = string(v.action), v.code
	w.meter.record(c.seen)
	endProcess(c.span, c.seen, v)
	switch v.action {
	case actAck:
		w.ack(d)
		return next{passed: true}
	case actWait:
		w.log.WarnContext(ctx, "retry", "id", c.in.meta.ID, "tries", c.attempt.tries, "delay", v.delay, "error", c.attempt.err)
		return next{park: true, delay: v.delay}
	case actNak:
		w.log.WarnContext(ctx, "give back", "id", c.in.meta.ID, "tries", c.attempt.tries, "delay", v.delay, "error", c.attempt.err)
		w.nak(d, v.delay)
	case actRenew:
		w.log.WarnContext(ctx, "return a copy of a message", "id", c.in.meta.ID, "deliveries", c.attempt.deliveries, "error", c.attempt.err)
		w.renew(ctx, d, v.delay)
	case actBury, actHandle:
	}
	return next{}
}

// ack waits for the broker's confirmation. Without one the message is redelivered,
// and the handler finds its work done.
func (w *worker) ack(d *delivery) {
	const attempts = 2
	for range attempts {
		msg, _, _ := w.dispatcher.latest(d)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(w.handlers), w.rt.cfg.PublishTimeout/attempts)
		err := msg.DoubleAck(ctx)
		cancel()
		if err == nil || errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
			failpoint.Reach(w.point, failpoint.Acked)
			return
		}
		w.log.Warn("acknowledge a message", "sequence", d.seq, "error", err)
	}
}

func (w *worker) nak(d *delivery, delay time.Duration) {
	msg, _, _ := w.dispatcher.latest(d)
	var err error
	if delay > 0 {
		err = msg.NakWithDelay(delay)
	} else {
		err = msg.Nak()
	}
	if err != nil && !errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
		w.log.Debug("return a message", "sequence", d.seq, "error", err) // comes again when the ack wait ends
	}
}

// renew publishes a copy of the message at the end of the queue and terminates this
// one. If the process dies in between there are two, and the handler of the second
// finds the work done.
func (w *worker) renew(ctx context.Context, d *delivery, delay time.Duration) {
	msg, _, tries := w.dispatcher.latest(d)
	again := &nats.Msg{Subject: msg.Subject(), Header: make(nats.Header, len(msg.Headers())), Data: msg.Data()}
	for name, values := range msg.Headers() {
		again.Header[name] = values
	}
	// The stream remembers the id of the first.
	again.Header.Set(jetstream.MsgIDHeader, events.HashID(w.binding.streamID, strconv.FormatUint(d.seq, 10), "again"))
	again.Header.Set(triesHeader, strconv.Itoa(tries))
	if _, err := w.rt.broker.send(context.WithoutCancel(ctx), outgoing{msg: again}); err != nil {
		w.log.Warn("return a copy of a message", "sequence", d.seq, "error", err)
		w.nak(d, delay)
		return
	}
	w.ack(d)
}

func (w *worker) giveBack(ds []*delivery) {
	for _, d := range ds {
		w.nak(d, 0)
	}
}

// bury publishes the dead letter and the stand-in of the message, if it needs one,
// and only then terminates the message.
func (w *worker) bury(ctx context.Context, d *delivery, c conclusion) error {
	ctx, cancel := within(context.WithoutCancel(ctx), 2*w.rt.cfg.PublishTimeout)
	defer cancel()
	l, err := w.rt.bury(ctx, w.log, w.service, w.point, c)
	if err != nil {
		return err
	}
	if c.route.skip != nil {
		if p := c.route.skip(c.in, c.verdict.code+": "+l.Reason); p != nil {
			if err := w.rt.broker.standIn(ctx, c.in.meta, w.source, p); err != nil {
				return err
			}
			failpoint.Reach(w.point, failpoint.Replaced)
		}
	}
	// The reason ends up in an advisory on one line.
	w.end(d, strings.TrimSpace(c.verdict.code+" "+strings.Map(printable, c.verdict.field)))
	return nil
}

// end terminates a buried message, so that it is not redelivered.
func (w *worker) end(d *delivery, reason string) {
	msg, _, _ := w.dispatcher.latest(d)
	if err := msg.TermWithReason(reason); err != nil && !errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
		w.log.Debug("terminate a message", "sequence", d.seq, "error", err) // buried again, under the same id
	}
	failpoint.Reach(w.point, failpoint.Ended)
}

func printable(r rune) rune {
	if r < ' ' || r > '~' {
		return '.'
	}
	return r
}
