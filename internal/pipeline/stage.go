package pipeline

import (
	"context"
	"time"

	"palimpsest/pkg/events"
)

// Handler is one stage of the pipeline. It must not publish, ack, sleep or read
// the wall clock: the runtime publishes the returned payloads, then acks the event.
// The error decides: nil acks; [Reject] buries; any other is retried with backoff. A
// handler may see an event again, late, or out of order.
type Handler[In events.Payload] func(ctx context.Context, in events.Event[In]) ([]events.Payload, error)

// RunHandler takes the waiting events of one fact scope at once: successive events
// of one kind, oldest first, often a single one. The last of them is the cause of the
// returned payloads. It is otherwise a [Handler]. If it fails with several, none is
// acked and it gets each by itself, so that its error concerns one event.
type RunHandler[In events.Payload] func(ctx context.Context, in []events.Event[In]) ([]events.Payload, error)

// ClockHandler runs at intervals and when woken; now is the runtime's clock.
type ClockHandler func(ctx context.Context, now time.Time) ([]events.Payload, error)

// Service has a name, for dead letters, logs and metrics, and the stages that the
// runtime runs.
type Service interface {
	Name() string
	Stages() []Stage
}

// Stage is one loop of a service: made by [Consume], [ReadLog] or [Clock].
type Stage struct {
	name   string
	stream string // of a durable consumer, which has the stage's name
	routes []Route
	clock  *clock
	log    *Log
}

// Route binds a kind of message to its handler; made by [On] or [OnRun].
type Route struct {
	kind   events.Kind
	handle func(ctx context.Context, m decoded) ([]events.Payload, error)
	// run handles several messages of one key; nil where each is handled by
	// itself.
	run func(ctx context.Context, run []decoded) ([]events.Payload, error)
	// skip returns the stand-in of a buried message, nil if nothing waits for it.
	skip func(m decoded, reason string) events.Payload
}

// On routes messages of In's kind to h.
func On[In events.Payload](h Handler[In]) Route {
	var zero In
	return Route{kind: zero.Kind(), skip: skip[In], handle: func(ctx context.Context, m decoded) ([]events.Payload, error) {
		in, err := decodeAs[In](m)
		if err != nil {
			return nil, err
		}
		return h(ctx, in)
	}}
}

// OnRun routes messages of In's kind to h, together where several of one fact
// scope wait. It does not wait for more: a run holds the messages that came while
// the run before it was handled.
func OnRun[In events.Payload](h RunHandler[In]) Route {
	r := On(func(ctx context.Context, in events.Event[In]) ([]events.Payload, error) {
		return h(ctx, []events.Event[In]{in})
	})
	r.run = func(ctx context.Context, run []decoded) ([]events.Payload, error) {
		typed := make([]events.Event[In], len(run))
		for i, m := range run {
			in, err := decodeAs[In](m)
			if err != nil {
				return nil, err
			}
			typed[i] = in
		}
		return h(ctx, typed)
	}
	return r
}

// Consume is a stage that reads a durable consumer of a stream, both as the topology
// declares them. Messages of
// one fact scope are handled in order, those of different ones in parallel.
func Consume(stream, consumer string, routes ...Route) Stage {
	return Stage{name: consumer, stream: stream, routes: routes}
}

// Clock is a stage that runs h at start, every interval (± 10 %), and whenever
// wake receives (nil: never); runs do not overlap.
func Clock(name string, interval time.Duration, wake <-chan struct{}, h ClockHandler) Stage {
	return Stage{name: name, clock: &clock{interval: interval, wake: wake, handle: h}}
}

// Handle passes one message to the stage's handler without a broker, for callers
// that run a service by hand. Nothing is published, acked or buried. Handle refuses
// messages that the stage has no handler for.
func (s Stage) Handle(ctx context.Context, raw events.Raw) ([]events.Payload, error) {
	meta, data, err := events.Decode(raw)
	if err != nil {
		return nil, err
	}
	if s.log != nil {
		e := NewEntry(raw)
		if err := s.log.Handle(ctx, []*Entry{e}); err != nil {
			return nil, err
		}
		return e.Out, e.Err
	}
	for _, r := range s.routes {
		if r.kind == meta.Kind {
			return r.handle(ctx, decoded{meta: meta, data: data})
		}
	}
	return nil, &events.FieldError{Field: "type", Code: events.CodeUnknownKind, Reason: string(meta.Kind) + " is not handled by " + s.name}
}
