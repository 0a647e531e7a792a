package pipeline

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"palimpsest/internal/failpoint"
	"palimpsest/pkg/events"
)

// clock is a stage made by [Clock].
type clock struct {
	interval time.Duration
	wake     <-chan struct{}
	handle   ClockHandler
}

// ticker runs a clock stage.
type ticker struct {
	rt       *Runtime
	source   string // of the published payloads
	name     string
	clock    *clock
	meter    *meter
	log      *slog.Logger
	handlers context.Context //nolint:containedctx // the lifetime of the stage
	owed     owed
}

// owed holds the payloads of a run that could not be published: the handler may
// regard them as done. They are published before the next run, under the same ids,
// unless the outage lasts longer than maxOwed.
type owed struct {
	cause    events.Meta
	payloads []events.Payload
	since    time.Time
}

// maxOwed bounds how long unpublished payloads are retried. Later sweeps for overdue
// work find what a longer outage drops.
const maxOwed = time.Minute

func newTicker(rt *Runtime, service string, stage Stage) *ticker {
	return &ticker{
		rt: rt, source: sourceOf(service), name: stage.name, clock: stage.clock,
		meter: rt.newMeter(service, stage.name, nil), log: logger(rt.log, service, stage.name),
	}
}

// run calls the handler at start, at intervals and when woken. After an error
// it tries again with backoff, but not later than the interval.
func (t *ticker) run(life lifetime) {
	t.handlers = life.handlers
	failures := 0
	for life.stop.Err() == nil {
		pause := time.Duration(float64(t.clock.interval) * (0.9 + 0.2*rand.Float64()))
		if t.once() {
			failures = 0
		} else {
			failures++
			pause = min(pause, t.rt.cfg.outage(failures, rand.Float64()))
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case _, ok := <-t.clock.wake:
			if !ok {
				t.clock.wake = nil
			}
		case <-life.stop.Done():
		}
		timer.Stop()
	}
}

// once runs the handler and publishes what it returns.
func (t *ticker) once() bool {
	now, began := t.rt.now(), time.Now()
	cause := events.Meta{ID: events.HashID(t.name, now.UTC().Format(time.RFC3339Nano))}
	err := t.rt.call(t.handlers, func(ctx context.Context) error {
		if err := t.settle(ctx); err != nil {
			return err
		}
		payloads, err := t.clock.handle(ctx, now)
		if err != nil {
			return err
		}
		failpoint.Reach(t.name, failpoint.Handled)
		t.owed = owed{cause, payloads, began}
		return t.settle(ctx)
	})
	o := Observation{Verdict: string(actAck), Duration: time.Since(began)}
	if err != nil {
		o.Verdict = string(actWait)
		o.Panicked = logFailure(t.log, err)
	}
	t.meter.record(o)
	return err == nil
}

// settle publishes the owed payloads.
func (t *ticker) settle(ctx context.Context) error {
	o := t.owed
	err := t.rt.broker.follow(ctx, o.cause, t.source, t.name, o.payloads)
	if _, refused := refusal(err); err == nil || refused || time.Since(o.since) > maxOwed {
		t.owed = owed{}
	}
	return err
}

// logFailure reports whether err was a panic.
func logFailure(log *slog.Logger, err error) bool {
	if p, ok := err.(*panicked); ok { //nolint:errorlint // call returns it bare
		log.Error("handler panicked", "panic", p.value, "stack", string(p.stack))
		return true
	}
	log.Warn("retry", "error", err)
	return false
}
