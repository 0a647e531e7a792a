package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/trace"
)

// Deps are the dependencies of the runtime.
type Deps struct {
	// JS should be made with an async publish timeout: several messages that
	// follow from one are published without waiting in between.
	JS jetstream.JetStream
	// Callers publishes the messages of API callers; nil means JS. On a connection of
	// its own it does not wait behind the stages' messages.
	Callers jetstream.JetStream
	Conn    *nats.Conn
	// Now is the clock that handlers are given; nil means time.Now.
	Now func() time.Time
	// Logger may be nil.
	Logger *slog.Logger
	// Tracer may be nil: then traces pass through without spans.
	Tracer trace.Tracer
	// Observer may be nil.
	Observer Observer
	// Inbox is the log that callers add episodes to; nil if none do.
	Inbox *Inbox
}

// Runtime runs services over the broker's streams.
type Runtime struct {
	cfg     Config
	js      jetstream.JetStream
	conn    *nats.Conn
	now     func() time.Time
	log     *slog.Logger
	tracing tracing
	seen    Observer
	broker  *broker
	callers jetstream.JetStream

	// suspects is held while a message of a queue is handled that may have killed
	// the process before.
	suspects sync.Mutex

	mu     sync.Mutex
	meters []*meter
	// advancing are the stages that report their progress.
	advancing []advancing
	passed    map[string]*atomic.Uint64
}

// New checks the configuration. It does not talk to the broker.
func New(cfg Config, deps Deps) (*Runtime, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if deps.JS == nil || deps.Conn == nil {
		return nil, errors.New("pipeline: a connection and its JetStream are required")
	}
	cfg = cfg.WithDefaults()
	if deps.Callers == nil {
		deps.Callers = deps.JS
	}
	if deps.Now == nil {
		deps.Now = time.Now
	}
	if deps.Logger == nil {
		deps.Logger = slog.New(slog.DiscardHandler)
	}
	return &Runtime{
		cfg: cfg, js: deps.JS, conn: deps.Conn, now: deps.Now, log: deps.Logger,
		tracing: tracing{deps.Tracer}, seen: deps.Observer, passed: make(map[string]*atomic.Uint64),
		broker: &broker{
			js: deps.JS, conn: deps.Conn, now: deps.Now, timeout: cfg.PublishTimeout, tracing: tracing{deps.Tracer},
			admission: &admission{js: deps.JS, inbox: deps.Inbox, now: deps.Now, most: uint64(cfg.Backlog), age: cfg.BacklogAge},
		},
		callers: deps.Callers,
	}, nil
}

// Publisher publishes the messages of callers.
func (rt *Runtime) Publisher() Publisher {
	b := *rt.broker
	b.js = rt.callers
	return &b
}

// Listener waits for outcomes.
func (rt *Runtime) Listener() Listener { return rt.broker }

// Stats returns one entry a stage, in the order in which they were made.
func (rt *Runtime) Stats() []StageStats {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	out := make([]StageStats, len(rt.meters))
	for i, m := range rt.meters {
		out[i] = m.snapshot()
		if m.held != nil {
			out[i].InFlight = m.held()
		}
	}
	return out
}

func (rt *Runtime) newMeter(service, stage string, held func() int) *meter {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	m := newMeter(service, stage, rt.seen, held)
	rt.meters = append(rt.meters, m)
	return m
}

// passedBy is the counter of messages that got through a consumer.
func (rt *Runtime) passedBy(service string, b *binding) *atomic.Uint64 {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	key := service + "/" + b.name
	if rt.passed[key] == nil {
		rt.passed[key] = new(atomic.Uint64)
	}
	return rt.passed[key]
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

// lifetime is how long a stage runs: it takes on new work until stop is done,
// and its handlers run until handlers is.
type lifetime struct {
	stop, handlers context.Context //nolint:containedctx // two ends of one life
}

// runner is a stage bound to its source.
type runner interface {
	// run returns when life has stopped and nothing is held any more.
	run(life lifetime)
}

// Run runs the services, given in the order of the data flow, until ctx is done;
// then it drains them and returns nil. It starts nothing and returns an error if a
// consumer that a stage names does not exist or has settings that break a promise.
//
// Services start downstream first and stop upstream first. Each finishes the
// messages that it holds. After DrainTimeout, Run cancels the handlers and returns
// the rest to the broker.
func (rt *Runtime) Run(ctx context.Context, services ...Service) error {
	runners, err := rt.bindAll(ctx, services)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	background := context.WithoutCancel(ctx)
	handlers, cancelHandlers := context.WithCancel(background)
	defer cancelHandlers()
	groups := make([]*group, len(services))
	for i := len(services) - 1; i >= 0; i-- {
		groups[i] = start(background, handlers, runners[i])
		rt.log.Debug("started", "service", services[i].Name(), "stages", len(runners[i]))
	}
	<-ctx.Done()
	deadline := time.AfterFunc(rt.cfg.DrainTimeout, cancelHandlers)
	defer deadline.Stop()
	for i, g := range groups {
		g.stop()
		g.wait()
		rt.log.Info("stopped", "service", services[i].Name()) //nolint:gosec // there is a group for each service
	}
	// All acks and naks must be sent before the caller closes the connection.
	if err := rt.conn.FlushTimeout(grace); err != nil {
		rt.log.Debug("flush", "error", err)
	}
	return nil
}

// group is the running stages of one service.
type group struct {
	stop context.CancelFunc
	wg   sync.WaitGroup
}

func (g *group) wait() { g.wg.Wait() }

func start(background, handlers context.Context, runners []runner) *group {
	g := &group{}
	var stop context.Context
	stop, g.stop = context.WithCancel(background)
	for _, r := range runners {
		g.wg.Go(func() { r.run(lifetime{stop: stop, handlers: handlers}) })
	}
	return g
}

func (rt *Runtime) bindAll(ctx context.Context, services []Service) ([][]runner, error) {
	ctx, cancel := within(ctx, rt.cfg.PublishTimeout)
	defer cancel()
	out := make([][]runner, len(services))
	for i, service := range services {
		for _, stage := range service.Stages() {
			r, err := rt.bind(ctx, service.Name(), stage)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", service.Name(), err)
			}
			if a, ok := r.(advancing); ok {
				rt.mu.Lock()
				rt.advancing = append(rt.advancing, a)
				rt.mu.Unlock()
			}
			out[i] = append(out[i], r)
		}
	}
	return out, nil
}

func (rt *Runtime) bind(ctx context.Context, service string, stage Stage) (runner, error) {
	if stage.clock != nil {
		return newTicker(rt, service, stage), nil
	}
	if stage.log != nil {
		return newLogGroup(rt, service, stage), nil
	}
	b, err := bind(ctx, rt.js, stage.stream, stage.name)
	if err != nil {
		return nil, err
	}
	return newWorker(rt, service, stage, b), nil
}
