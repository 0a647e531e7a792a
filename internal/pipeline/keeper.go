package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
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

// keeper is the common part of all stages with a consumer: it reports held messages
// in progress, calls handlers and carries verdicts out.
type keeper struct {
	rt         *Runtime
	service    string
	source     string // of the published payloads
	point      string // stage of the failpoints
	binding    *binding
	dispatcher *dispatcher
	meter      *meter
	log        *slog.Logger
	// handlers ends when handlers must.
	handlers context.Context //nolint:containedctx // the lifetime of a stage
}

func newKeeper(rt *Runtime, service, stage string, b *binding, l *dispatcher) *keeper {
	return &keeper{
		rt: rt, service: service, source: sourceOf(service), point: stage, binding: b, dispatcher: l,
		meter: rt.newMeter(service, stage, l.len), log: logger(rt.log, service, stage),
	}
}

func sourceOf(service string) string { return "palimpsest/" + service }

// startBeats reports all held messages as in progress, until end is called.
func (k *keeper) startBeats() (end func()) {
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
				k.beat()
			}
		}
	})
	return func() { close(done); wg.Wait() }
}

func (k *keeper) beat() {
	var held []jetstream.Msg
	k.dispatcher.each(func(d *delivery) {
		// A handler past its deadline has lost its claim: the message is
		// delivered again, to a replica that is not stuck.
		if d.state != running || time.Since(d.started) < k.rt.cfg.HandlerTimeout {
			held = append(held, d.msg)
		}
	})
	for _, msg := range held {
		if err := msg.InProgress(); err != nil && !errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
			k.log.Debug("report that work is in progress", "error", err)
		}
	}
}

func (k *keeper) decode(msg jetstream.Msg) (events.Raw, decoded, error) {
	in, err := raw(msg, k.binding.streamID)
	if err != nil {
		return in, decoded{}, err
	}
	meta, data, err := events.Decode(in)
	return in, decoded{meta: meta, data: data}, err
}

// call runs f with the handlers' deadline; a panic becomes an error.
func (rt *Runtime) call(ctx context.Context, f func(ctx context.Context) error) (err error) {
	ctx, cancel := within(ctx, rt.cfg.HandlerTimeout)
	defer cancel()
	defer func() {
		if value := recover(); value != nil {
			err = &panicked{value: value, stack: debug.Stack()}
		}
	}()
	return f(ctx)
}

// within is [context.WithTimeout] for work of several requests. The context shows no
// deadline: the JetStream client bounds a request to some seconds only where there is none.
func within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	return undated{ctx}, cancel
}

// undated is a context that ends and does not say when.
type undated struct {
	context.Context //nolint:containedctx // it is a context
}

// Deadline implements [context.Context].
func (undated) Deadline() (time.Time, bool) { return time.Time{}, false }

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
func (k *keeper) conclude(ctx context.Context, d *delivery, c conclusion) next {
	v := c.verdict
	if k.handlers.Err() != nil && (v.action == actNak || v.action == actRenew || v.action == actWait || v.code == events.CodePoison && c.attempt.handled) {
		v = verdict{action: actNak} // cancelled, not failed
	}
	var p *panicked
	if c.seen.Panicked = errors.As(c.attempt.err, &p); c.seen.Panicked {
		k.log.ErrorContext(ctx, "handler panicked", "id", c.in.meta.ID, "panic", p.value, "stack", string(p.stack))
	}
	if v.action == actBury {
		err := k.bury(ctx, d, c)
		if err != nil {
			k.log.ErrorContext(ctx, "bury", "id", c.in.meta.ID, "sequence", c.raw.Sequence, "error", err)
			delay := backoff(c.attempt.tries, k.rt.cfg.RetryBase, k.rt.cfg.RetryMax, 0.5)
			v = verdict{action: actNak, delay: delay}
		}
	}
	c.seen.Verdict, c.seen.Code = string(v.action), v.code
	k.meter.record(c.seen)
	endProcess(c.span, c.seen, v)
	switch v.action {
	case actAck:
		k.ack(d)
		return next{passed: true}
	case actWait:
		k.log.WarnContext(ctx, "retry", "id", c.in.meta.ID, "tries", c.attempt.tries, "delay", v.delay, "error", c.attempt.err)
		return next{park: true, delay: v.delay}
	case actNak:
		k.log.WarnContext(ctx, "give back", "id", c.in.meta.ID, "tries", c.attempt.tries, "delay", v.delay, "error", c.attempt.err)
		k.nak(d, v.delay)
	case actRenew:
		k.log.WarnContext(ctx, "return a copy of a message", "id", c.in.meta.ID, "deliveries", c.attempt.deliveries, "error", c.attempt.err)
		k.renew(ctx, d, v.delay)
	case actBury, actHandle:
	}
	return next{}
}

// ack waits for the broker's confirmation. Without one the message is redelivered,
// and the handler finds its work done.
func (k *keeper) ack(d *delivery) {
	const attempts = 2
	for range attempts {
		msg, _, _ := k.dispatcher.latest(d)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(k.handlers), k.rt.cfg.PublishTimeout/attempts)
		err := msg.DoubleAck(ctx)
		cancel()
		if err == nil || errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
			failpoint.Reach(k.point, failpoint.Acked)
			return
		}
		k.log.Warn("acknowledge a message", "sequence", d.seq, "error", err)
	}
}

func (k *keeper) nak(d *delivery, delay time.Duration) {
	msg, _, _ := k.dispatcher.latest(d)
	var err error
	if delay > 0 {
		err = msg.NakWithDelay(delay)
	} else {
		err = msg.Nak()
	}
	if err != nil && !errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
		k.log.Debug("return a message", "sequence", d.seq, "error", err) // comes again when the ack wait ends
	}
}

// renew publishes a copy of the message at the end of the queue and terminates this
// one. If the process dies in between there are two, and the handler of the second
// finds the work done.
func (k *keeper) renew(ctx context.Context, d *delivery, delay time.Duration) {
	msg, _, tries := k.dispatcher.latest(d)
	again := &nats.Msg{Subject: msg.Subject(), Header: make(nats.Header, len(msg.Headers())), Data: msg.Data()}
	for name, values := range msg.Headers() {
		again.Header[name] = values
	}
	// The stream remembers the id of the first.
	again.Header.Set(jetstream.MsgIDHeader, events.HashID(k.binding.streamID, strconv.FormatUint(d.seq, 10), "again"))
	again.Header.Set(triesHeader, strconv.Itoa(tries))
	if _, err := k.rt.broker.send(context.WithoutCancel(ctx), outgoing{msg: again}); err != nil {
		k.log.Warn("return a copy of a message", "sequence", d.seq, "error", err)
		k.nak(d, delay)
		return
	}
	k.ack(d)
}

func (k *keeper) giveBack(ds []*delivery) {
	for _, d := range ds {
		k.nak(d, 0)
	}
}

// bury publishes the dead letter and the stand-in of the message, if it needs one,
// and only then terminates the message.
func (k *keeper) bury(ctx context.Context, d *delivery, c conclusion) error {
	ctx, cancel := within(context.WithoutCancel(ctx), 2*k.rt.cfg.PublishTimeout)
	defer cancel()
	l := newLetter(k.service, c, k.rt.now())
	if err := k.rt.broker.bury(ctx, k.source, c.in.meta, l); err != nil {
		return err
	}
	failpoint.Reach(k.point, failpoint.Buried)
	if c.route.skip != nil {
		if p := c.route.skip(c.in, c.verdict.code+": "+l.Reason); p != nil {
			if err := k.rt.broker.standIn(ctx, c.in.meta, k.source, p); err != nil {
				return err
			}
			failpoint.Reach(k.point, failpoint.Replaced)
		}
	}
	k.log.WarnContext(ctx, "buried", "id", c.in.meta.ID, "stream", c.raw.Stream, "sequence", c.raw.Sequence,
		"code", c.verdict.code, "field", c.verdict.field, "reason", l.Reason)
	// The reason ends up in an advisory on one line.
	k.end(d, strings.TrimSpace(c.verdict.code+" "+strings.Map(printable, c.verdict.field)))
	return nil
}

// end terminates a buried message, so that it is not redelivered.
func (k *keeper) end(d *delivery, reason string) {
	msg, _, _ := k.dispatcher.latest(d)
	if err := msg.TermWithReason(reason); err != nil && !errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
		k.log.Debug("end a message", "sequence", d.seq, "error", err) // buried again, under the same id
	}
	failpoint.Reach(k.point, failpoint.Ended)
}

func printable(r rune) rune {
	if r < ' ' || r > '~' {
		return '.'
	}
	return r
}
