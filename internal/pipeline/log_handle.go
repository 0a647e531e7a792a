package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"

	"palimpsest/internal/cursor"
	"palimpsest/internal/failpoint"
	"palimpsest/pkg/events"
)

// handle takes new messages, and the held ones if it is time to try them again.
// A message waits while an earlier one with the same key does.
func (r *logReader) handle(fresh []*Entry) {
	batch, waiting := fresh, []*Entry(nil)
	if len(r.held) > 0 {
		if time.Now().Before(r.retryAt) {
			batch, waiting = passing(fresh, r.held)
			waiting = slices.Concat(r.held, waiting)
		} else {
			for _, e := range r.held {
				e.decode()
			}
			batch = slices.Concat(r.held, fresh)
		}
	}
	r.held = waiting
	if len(batch) == 0 {
		return
	}
	r.process(batch)
	switch {
	case len(r.held) > len(waiting):
		r.tries++
		r.retryAt = time.Now().Add(r.rt.cfg.outage(r.tries, rand.Float64()))
	case len(r.held) == 0:
		r.tries = 0
	}
	r.waiting.Store(int64(len(r.held)))
}

// hold keeps messages to be tried again, in stream order.
func (r *logReader) hold(failed ...*Entry) {
	r.held = append(r.held, failed...)
	slices.SortFunc(r.held, func(a, b *Entry) int { return cmp.Compare(a.raw.Sequence, b.raw.Sequence) })
}

// passing splits fresh into the messages with no held one before them, and the rest.
func passing(fresh, held []*Entry) (pass, wait []*Entry) {
	keys := make(map[string]bool, len(held))
	for _, e := range held {
		keys[e.Key] = true
	}
	for _, e := range fresh {
		if keys[e.Key] {
			wait = append(wait, e)
		} else {
			pass = append(pass, e)
		}
	}
	return pass, wait
}

func (e *Entry) decode() {
	e.Out = nil
	e.Meta, e.Data, e.Err = events.Decode(e.raw)
}

// process handles messages and holds those that have to be tried again.
func (r *logReader) process(batch []*Entry) {
	if r.careful == 0 {
		r.alone.RLock()
		defer r.alone.RUnlock()
		r.hold(r.attempt(batch)...)
		return
	}
	oneByOne(batch, r.single, func(e *Entry) { r.hold(e) })
}

// oneByOne handles messages one at a time. One that fails is held, and so are
// those behind it with its key.
func oneByOne(batch []*Entry, handle func(*Entry) (ok bool), hold func(*Entry)) {
	blocked := make(map[string]bool)
	for _, e := range batch {
		if blocked[e.Key] || !handle(e) {
			blocked[e.Key] = true
			hold(e)
		}
	}
}

// single handles a message while no other of the log is handled in this process.
// Its mark is gone before the next one begins, which may be the cause of a death.
func (r *logReader) single(e *Entry) (ok bool) {
	if r.suspect.Alone == e.raw.Sequence {
		r.pause(time.Duration(r.suspect.Deaths) * suspectPause)
	}
	r.alone.Lock()
	defer r.alone.Unlock()
	if r.careful > 0 {
		r.careful--
	}
	if err := r.mark(e); err != nil {
		e.Err = err
	}
	ok = len(r.attempt([]*Entry{e})) == 0
	if r.marked() {
		c := r.at
		c.Alone, c.Deaths = r.suspect.Alone, r.suspect.Deaths
		if err := r.set(r.handlers, c); err != nil {
			r.log.Warn("remove a mark", "reader", r.part.Reader, "error", err) // the next flush does
		}
	}
	return ok
}

// errUnmarked keeps a message from its handler.
var errUnmarked = errors.New("pipeline: the mark of a message that is handled by itself cannot be written")

// mark writes, before a message is handled by itself, that a death from now on
// counts against this message. A message that was alone in hand at [maxDeaths]
// deaths is refused.
func (r *logReader) mark(e *Entry) error {
	c := r.at
	c.Alone, c.Deaths = e.raw.Sequence, 1
	suspected := r.suspect.Alone == e.raw.Sequence
	if suspected {
		if c.Deaths += r.suspect.Deaths; c.Deaths > maxDeaths {
			return Rejectf(events.CodePoison, "", "the process died %d times while it handled nothing but this message", maxDeaths)
		}
	}
	if before := min(e.raw.Sequence-1, r.low()); before > c.Sequence {
		c.Sequence, c.Starts = before, 0
	}
	if err := r.set(r.handlers, c); err != nil {
		return fmt.Errorf("%w: %w", errUnmarked, err)
	}
	if suspected {
		r.suspect = cursor.Cursor{}
	}
	return nil
}

// attempt handles messages together and returns those that have to be tried
// again. After a panic each goes alone, to find the one that causes it.
func (r *logReader) attempt(batch []*Entry) (failed []*Entry) {
	began := time.Now()
	fit := slices.DeleteFunc(slices.Clone(batch), func(e *Entry) bool { return e.Err != nil })
	at := spot{point: r.Name, group: r.Name}
	ctxs, spans := r.rt.tracing.run(r.handlers, at, len(fit), func(i int) (*events.Meta, int) { return &fit[i].Meta, len(fit[i].Data) })
	var err error
	if len(fit) > 0 {
		err = r.rt.call(ctxs[len(ctxs)-1], func(ctx context.Context) error { return r.callHandler(ctx, ctxs, fit) })
	}
	if crashed(err) {
		logFailure(r.log, err)
	}
	if crashed(err) && len(fit) > 1 {
		endEntries(spans, fit, Observation{Verdict: string(actWait), Panicked: true})
		oneByOne(batch,
			func(e *Entry) bool { return len(r.attempt([]*Entry{e})) == 0 },
			func(e *Entry) { failed = append(failed, e) })
		return failed
	}
	took := time.Since(began)
	for _, e := range fit {
		e.tries++
		if err != nil && e.Err == nil {
			e.Err = err
		}
		if crashed(e.Err) && e.tries >= maxDeaths {
			e.Err = Rejectf(events.CodePoison, "", "%v", e.Err)
		}
	}
	for _, e := range batch {
		if !r.conclude(e, took/time.Duration(len(batch))) {
			failed = append(failed, e)
		}
	}
	endEntries(spans, fit, Observation{Duration: took / time.Duration(len(batch))})
	return failed
}

// callHandler runs the handler and publishes its payloads.
func (r *logReader) callHandler(ctx context.Context, ctxs []context.Context, fit []*Entry) error {
	failpoint.Reach(r.Name, failpoint.Fetched)
	if err := r.Handle(ctx, fit); err != nil {
		return err
	}
	failpoint.Reach(r.Name, failpoint.Handled)
	var out bundle
	for i, e := range fit {
		if e.Err == nil {
			r.rt.broker.compose(ctxs[i], &out, e.Meta, sourceOf(r.service), e.Out)
		}
	}
	return r.rt.broker.sendBundle(ctx, r.Name, out)
}

// conclude buries a refused message, and reports whether the message is finished.
func (r *logReader) conclude(e *Entry, took time.Duration) bool {
	o := Observation{Verdict: string(actAck), Duration: took, Waited: r.rt.now().Sub(e.raw.Time), Panicked: crashed(e.Err)}
	v, refused := refusal(e.Err)
	switch {
	case refused && r.bury(e, v) == nil:
		o.Verdict, o.Code = string(actBury), v.code
	case e.Err != nil:
		o.Verdict = string(actWait)
		r.log.Warn("retry", "id", e.Meta.ID, "sequence", e.raw.Sequence, "tries", e.tries, "error", e.Err)
	}
	r.meter.record(o)
	return o.Verdict != string(actWait)
}

func (r *logReader) bury(e *Entry, v verdict) error {
	ctx, cancel := within(context.WithoutCancel(r.handlers), r.rt.cfg.PublishTimeout)
	defer cancel()
	_, err := r.rt.bury(ctx, r.log, r.service, r.Name, conclusion{
		raw: e.raw, in: decoded{meta: e.Meta, data: e.Data}, attempt: attempt{err: e.Err, tries: max(e.tries, 1)}, verdict: v,
	})
	if err != nil {
		r.log.Error("bury", "id", e.Meta.ID, "sequence", e.raw.Sequence, "error", err)
	}
	return err
}

// endEntries ends the spans of messages, each with the verdict on its message.
func endEntries(spans []trace.Span, in []*Entry, o Observation) {
	for i, span := range spans {
		o := o
		if o.Verdict == "" {
			switch v, refused := refusal(in[i].Err); {
			case refused:
				o.Verdict, o.Code = string(actBury), v.code
			case in[i].Err != nil:
				o.Verdict = string(actWait)
			default:
				o.Verdict = string(actAck)
			}
		}
		endProcess(span, o, verdict{})
	}
}
