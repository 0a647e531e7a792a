package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/pkg/events"
)

// batchRoute is the type-free form of a [BatchHandler].
type batchRoute struct {
	size   int
	wait   time.Duration
	kind   events.Kind
	decode func(decoded) (any, error)
	handle func(ctx context.Context, in []any) error
}

func newBatchRoute[In events.Payload](size int, wait time.Duration, h BatchHandler[In]) *batchRoute {
	var zero In
	return &batchRoute{
		size: max(size, 1), wait: max(wait, time.Millisecond), kind: zero.Kind(),
		decode: func(m decoded) (any, error) { return decodeAs[In](m) },
		handle: func(ctx context.Context, in []any) error {
			typed := make([]events.Event[In], len(in))
			for i, e := range in {
				typed[i] = e.(events.Event[In]) //nolint:forcetypeassert // decode made it
			}
			return h(ctx, typed)
		},
	}
}

// batcher runs a stage made by [ConsumeBatch].
type batcher struct {
	*keeper
	route *batchRoute
	stop  context.Context //nolint:containedctx // the lifetime of a stage
}

// member is one message of a batch.
type member struct {
	d       *delivery
	raw     events.Raw
	in      decoded
	event   any
	attempt attempt
}

func newBatcher(rt *Runtime, service string, stage Stage, b *binding) *batcher {
	// The dispatcher only holds messages here: a message of a batch never runs by itself.
	return &batcher{route: stage.batch, keeper: newKeeper(rt, service, stage.name, b, newDispatcher(0, nil, nil))}
}

func (b *batcher) run(life lifetime) {
	b.handlers, b.stop = life.handlers, life.stop
	endBeats := b.startBeats()
	defer endBeats()
	for life.stop.Err() == nil {
		batch, err := b.collect()
		if err != nil && life.stop.Err() == nil {
			b.log.Warn("fetch", "error", err)
			b.pause(rest)
		}
		b.settle(batch)
	}
}

// pause waits, unless the stage stops.
func (b *batcher) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-b.stop.Done():
	}
}

// collect gathers a batch, in stream order. Messages that no handler can take
// are concluded at once.
func (b *batcher) collect() ([]*member, error) {
	var got []*delivery
	s := &source{
		binding: b.binding, log: b.log,
		accept: func(msg jetstream.Msg) {
			d, err := newDelivery(msg)
			if err != nil {
				b.log.Error("accept", "error", err)
				return
			}
			if b.dispatcher.hold(d) {
				got = append(got, d)
			}
		},
	}
	err := s.fetchFor(b.stop, b.route.size, b.route.wait)
	slices.SortFunc(got, func(x, y *delivery) int { return cmp.Compare(x.seq, y.seq) })
	out := make([]*member, 0, len(got))
	for _, d := range got {
		if m := b.admit(d); m != nil {
			out = append(out, m)
		}
	}
	return out, err
}

// admit decodes a message; nil where it never can be handled.
func (b *batcher) admit(d *delivery) *member {
	msg, deliveries, tries := b.dispatcher.latest(d)
	m := &member{d: d}
	var err error
	m.raw, m.in, err = b.decode(msg)
	if err == nil && m.in.meta.Kind != b.route.kind {
		err = &events.FieldError{Field: "type", Code: events.CodeUnknownKind, Reason: fmt.Sprintf("%s is not handled here", m.in.meta.Kind)}
	}
	if err == nil {
		m.event, err = b.route.decode(m.in)
	}
	m.attempt = attempt{err: err, deliveries: deliveries, tries: tries, age: b.rt.now().Sub(m.raw.Time)}
	if err == nil {
		return m
	}
	b.finish(m, b.rt.cfg.judge(m.attempt, rand.Float64()), Observation{Waited: m.attempt.age})
	return nil
}

// finish carries out the verdict on one message and lets go of it.
func (b *batcher) finish(m *member, v verdict, o Observation) {
	o.Kind, o.Redelivered = m.in.meta.Kind, m.attempt.deliveries > 1
	n := b.conclude(b.handlers, m.d, conclusion{raw: m.raw, in: m.in, attempt: m.attempt, verdict: v, seen: o})
	if n.park { // nothing waits in place outside a batch
		b.nak(m.d, n.delay)
	}
	b.dispatcher.drop(m.d)
}
