package pipeline

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"palimpsest/internal/failpoint"
	"palimpsest/pkg/events"
)

// settle handles a batch until each of its messages is acked, buried or, when
// the stage stops, given back. A batch that is refused is halved until the one
// event that causes it is found. A batch that fails waits and is tried again;
// it too is halved once the fault looks like one event's.
func (b *batcher) settle(batch []*member) {
	if len(batch) == 0 {
		return
	}
	parts := b.separate(batch)
	passed := false // anything of this batch, since it began to fail
	for tries := 1; len(parts) > 0; tries++ {
		left, gotThrough, panicked := b.round(parts, tries, passed)
		passed = passed || gotThrough
		if len(left) == 0 {
			return
		}
		if panicked || passed || tries >= b.rt.cfg.MaxDeliveries {
			left = halveFirst(left)
		}
		if passed {
			b.pause(backoff(tries, b.rt.cfg.RetryBase, b.rt.cfg.RetryMax, rand.Float64()))
		} else {
			b.pause(b.rt.cfg.outage(tries, rand.Float64()))
		}
		if b.stop.Err() != nil {
			b.abandon(left)
			return
		}
		parts = left
	}
}

// separate isolates messages that may have killed a process before: each is
// handled by itself, in random order, so that the innocent get through.
func (b *batcher) separate(batch []*member) [][]*member {
	suspect := func(m *member) bool { return m.attempt.deliveries > b.rt.cfg.suspectAfter() }
	if !slices.ContainsFunc(batch, suspect) {
		return [][]*member{batch}
	}
	parts := make([][]*member, len(batch))
	for i, j := range rand.Perm(len(batch)) {
		parts[i] = batch[j : j+1]
	}
	return parts
}

// round tries each part once and returns those that have to be tried again. Two
// failures without a success in between end it: a dependency is down, and the
// rest would only wait for it too.
func (b *batcher) round(parts [][]*member, tries int, passed bool) (left [][]*member, gotThrough, panicked bool) {
	failures := 0
	for len(parts) > 0 {
		part := parts[0]
		parts = parts[1:]
		if len(part) == 1 {
			if v := b.rt.cfg.judge(part[0].attempt, rand.Float64()); v.action != actHandle {
				b.finish(part[0], v, Observation{})
				continue
			}
		}
		took, err := b.attempt(part)
		a := attempt{handled: true, err: err, tries: tries}
		if len(part) == 1 {
			a = part[0].answered(err, tries)
		}
		if passed || gotThrough {
			a.strikes = tries
		}
		v := b.rt.cfg.judge(a, rand.Float64())
		switch {
		case v.action == actAck:
			b.ackAll(part, took)
			gotThrough, failures = true, 0
		case len(part) == 1 && (v.action == actBury || v.action == actNak):
			part[0].attempt = a
			b.finish(part[0], v, Observation{Duration: took})
		case v.action == actBury && v.code != events.CodePoison:
			mid := len(part) / 2
			parts = append([][]*member{part[:mid], part[mid:]}, parts...)
		default:
			panicked = panicked || crashed(err)
			b.meter.record(Observation{Verdict: string(actWait), Panicked: logFailure(b.log, err), Kind: b.route.kind, Duration: took})
			left = append(left, part)
			if failures++; failures > 1 {
				return append(left, parts...), gotThrough, panicked
			}
		}
	}
	return left, gotThrough, panicked
}

// answered is the attempt at a message that was handled by itself, in the n-th
// round of its batch.
func (m *member) answered(err error, n int) attempt {
	a := m.attempt
	a.handled, a.err, a.tries = true, err, a.tries+n-1
	return a
}

// attempt calls the handler with one part.
func (b *batcher) attempt(part []*member) (took time.Duration, err error) {
	in := make([]any, len(part))
	now := time.Now()
	for i, m := range part {
		in[i] = m.event
	}
	b.dispatcher.begin(now, part)
	ctx, span := b.rt.tracing.batch(b.handlers, b.keeper, part)
	err = b.call(ctx, func(ctx context.Context) error {
		failpoint.Reach(b.point, failpoint.Fetched)
		if err := b.route.handle(ctx, in); err != nil {
			return err
		}
		failpoint.Reach(b.point, failpoint.Handled)
		return nil
	})
	b.dispatcher.end(part)
	endBatch(span, err)
	return time.Since(now), err
}

// halveFirst splits the first part that can be.
func halveFirst(parts [][]*member) [][]*member {
	for i, part := range parts {
		if mid := len(part) / 2; mid > 0 {
			out := append([][]*member{}, parts[:i]...)
			return append(append(out, part[:mid], part[mid:]), parts[i+1:]...)
		}
	}
	return parts
}

// ackAll acks the messages of a part that was handled.
func (b *batcher) ackAll(part []*member, took time.Duration) {
	const atOnce = 32
	var wg sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for _, m := range part {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			m.attempt.handled = true
			b.finish(m, verdict{action: actAck}, Observation{Duration: took / time.Duration(len(part)), Waited: m.attempt.age})
		})
	}
	wg.Wait()
}

// abandon gives back what is left when the stage stops.
func (b *batcher) abandon(parts [][]*member) {
	for _, part := range parts {
		for _, m := range part {
			b.nak(m.d, 0)
			b.dispatcher.drop(m.d)
		}
	}
}
