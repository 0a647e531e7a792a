package llm

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits bound what a [Governor] lets through. A zero value stands for its default.
type Limits struct {
	// Concurrency is how many calls run at a time. Default 4.
	Concurrency int
	// PerMinute is how many calls start in a minute. Default: no bound.
	PerMinute int
	// Backoff and BackoffMost bound the pause after a call that met an outage. It
	// doubles from one such call to the next. Where the endpoint names a pause, that
	// holds if it is longer. Defaults 1 s and 1 min.
	Backoff, BackoffMost time.Duration
	// Patience is how long a call waits for its turn. Default 10 s.
	Patience time.Duration
	// DailyTokens and DailyDollars bound what a project spends on a day (UTC).
	// Default: no bound.
	DailyTokens  int
	DailyDollars float64
	// InputPrice and OutputPrice are dollars for a million tokens, 0 where they are
	// not known.
	InputPrice, OutputPrice float64
}

// WithDefaults returns l with its default in each zero member.
func (l Limits) WithDefaults() Limits {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&l.Backoff, time.Second}, {&l.BackoffMost, time.Minute}, {&l.Patience, 10 * time.Second}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if l.Concurrency == 0 {
		l.Concurrency = 4
	}
	return l
}

// Validate names a limit that makes no sense.
func (l Limits) Validate() error {
	l = l.WithDefaults()
	switch {
	case l.Concurrency < 1 || l.Concurrency > 1000:
		return fmt.Errorf("concurrency: %d is outside 1 to 1000", l.Concurrency)
	case l.PerMinute < 0 || l.DailyTokens < 0 || l.DailyDollars < 0 || l.InputPrice < 0 || l.OutputPrice < 0:
		return errors.New("a limit or price is negative")
	case l.Backoff < time.Millisecond || l.BackoffMost < l.Backoff || l.BackoffMost > time.Hour:
		return fmt.Errorf("backoff: %v to %v is outside 1ms to 1h", l.Backoff, l.BackoffMost)
	case l.Patience < 0 || l.Patience > time.Minute:
		return fmt.Errorf("patience: %v is outside 0 to 1m", l.Patience)
	case l.DailyDollars > 0 && l.InputPrice == 0 && l.OutputPrice == 0:
		return errors.New("daily_dollars needs prices")
	}
	return nil
}

// Dollars is the price of a reply.
func (l Limits) Dollars(r Reply) float64 {
	return (float64(r.InputTokens)*l.InputPrice + float64(r.OutputTokens)*l.OutputPrice) / 1e6
}

// PausedError says that no call was made, or that the one made met an outage or gave
// a reply that cannot be read, and when to come again.
type PausedError struct {
	After time.Duration
	Err   error
	// Asked says that a call was made.
	Asked bool
}

func (e *PausedError) Error() string {
	return fmt.Sprintf("paused for %v: %v", e.After.Round(time.Millisecond), e.Err)
}

// Unwrap returns the reason.
func (e *PausedError) Unwrap() error { return e.Err }

// Paused returns how long to wait before the request is made again; false where the
// error is about the request.
func Paused(err error) (time.Duration, bool) {
	var p *PausedError
	if !errors.As(err, &p) {
		return 0, false
	}
	return p.After, true
}

// The reasons of a pause that no endpoint gave.
var (
	ErrBusy       = errors.New("llm: all calls are taken")
	ErrDailyLimit = errors.New("llm: daily limit of the project reached")
)

// Governor is a model with limits: on concurrent calls and calls a minute, on the
// daily cost of a project, and during an outage one call after each pause. It is the
// circuit breaker of its endpoint; its pauses grow and follow Retry-After, so the
// open period is not a constant. A caller that gets a [PausedError] tries again
// later: no call blocks for long.
type Governor struct {
	model  Model
	limits Limits
	purse  Purse
	now    func() time.Time
	slots  chan struct{}
	rate   *rate.Limiter

	mu      sync.Mutex
	fails   int // outages since the last reply
	until   time.Time
	reason  error
	probing bool // the one call after a pause is under way
	replied time.Time
	state   State
}

// State is what a governor tells of itself.
type State struct {
	Info
	Paused bool      `json:"paused"`
	Until  time.Time `json:"until,omitzero"`
	Reason string    `json:"reason,omitempty"`
	Calls  uint64    `json:"calls"`
	Failed uint64    `json:"failed"`
	Input  uint64    `json:"input_tokens"`
	Output uint64    `json:"output_tokens"`
}

// Govern returns a governor of m. purse keeps what projects spend; nil forgets it
// when the process ends.
func Govern(m Model, limits Limits, purse Purse, now func() time.Time) *Governor {
	limits = limits.WithDefaults()
	g := &Governor{model: m, limits: limits, purse: purse, now: now, slots: make(chan struct{}, limits.Concurrency)}
	if purse == nil {
		g.purse = &pocket{}
	}
	if limits.PerMinute > 0 {
		g.rate = rate.NewLimiter(rate.Limit(float64(limits.PerMinute)/60), max(1, limits.PerMinute/60))
	}
	return g
}

// Info implements [Model].
func (g *Governor) Info() Info { return g.model.Info() }

// State tells how the governor is.
func (g *Governor) State() State {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.state
	s.Info = g.model.Info()
	if g.fails > 0 {
		s.Paused, s.Until, s.Reason = true, g.until, g.reason.Error()
	}
	return s
}

// Replied is when the last reply came that could be read; zero for never.
func (g *Governor) Replied() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.replied
}

// Complete implements [Model].
func (g *Governor) Complete(ctx context.Context, req Request) (Reply, error) {
	if err := g.afford(ctx, req.Scope.Project); err != nil {
		return Reply{}, err
	}
	leave, err := g.enter(ctx)
	if err != nil {
		return Reply{}, err
	}
	reply, pause, err := g.call(ctx, req, leave)
	var lost error
	if spent := g.spend(reply, err); spent != (Spend{}) {
		lost = g.purse.Add(context.WithoutCancel(ctx), req.Scope.Project, day(g.now()), spent)
	}
	if Outage(err) || errors.Is(err, ErrMalformed) {
		err = &PausedError{After: pause, Err: err, Asked: true}
	}
	if lost == nil {
		return reply, err
	}
	lost = fmt.Errorf("llm: store the spent tokens: %w", lost)
	if err == nil {
		return reply, &unkeptError{lost}
	}
	return reply, errors.Join(err, lost)
}

var errPanic = errors.New("llm: the call panicked")

// call makes a call and leaves, also where it panics: a stage survives that.
func (g *Governor) call(ctx context.Context, req Request, leave func(Reply, error) time.Duration) (reply Reply, pause time.Duration, err error) {
	err = errPanic
	defer func() { pause = leave(reply, err) }()
	reply, err = g.model.Complete(ctx, req)
	if err == nil && req.Accept != nil {
		if bad := req.Accept(reply); bad != nil {
			err = fmt.Errorf("%w: %w", ErrMalformed, bad)
		}
	}
	return reply, pause, err
}

// unkeptError comes with a reply that was paid for and is whole: only what it cost could
// not be kept.
type unkeptError struct{ error }

func (e *unkeptError) Unwrap() error { return e.error }

// enter waits for its turn, for as long as the patience lasts. leave takes the
// outcome of the call, and returns how long the governor pauses.
func (g *Governor) enter(ctx context.Context) (leave func(Reply, error) time.Duration, err error) {
	turn := time.NewTimer(g.limits.Patience)
	defer turn.Stop()
	select {
	case g.slots <- struct{}{}:
	case <-turn.C:
		return nil, &PausedError{After: g.jitter(g.limits.Backoff), Err: ErrBusy}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	probe, err := g.admit()
	if err == nil {
		err = g.pace(ctx)
	}
	if err != nil {
		g.settle(probe, context.Canceled)
		<-g.slots
		return nil, err
	}
	return func(reply Reply, err error) time.Duration {
		defer func() { <-g.slots }()
		g.count(reply, err)
		return g.settle(probe, err)
	}, nil
}

// admit refuses a call during a pause, and all but one right after it.
func (g *Governor) admit() (probe bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fails == 0 {
		return false, nil
	}
	if left := g.until.Sub(g.now()); left > 0 {
		return false, &PausedError{After: g.jitter(left), Err: g.reason}
	}
	if g.probing {
		return false, &PausedError{After: g.jitter(g.limits.Backoff), Err: g.reason}
	}
	g.probing = true
	return true, nil
}

// pace waits where calls follow each other too fast.
func (g *Governor) pace(ctx context.Context) error {
	if g.rate == nil {
		return nil
	}
	place := g.rate.Reserve()
	wait := place.Delay()
	if wait > g.limits.Patience {
		place.Cancel()
		return &PausedError{After: g.jitter(wait), Err: ErrBusy}
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		place.Cancel()
		return ctx.Err()
	}
}

// settle takes the outcome of a call: a reply ends a pause, an outage and a reply
// that cannot be read begin one or make it longer. Anything else changes nothing.
func (g *Governor) settle(probe bool, err error) (pause time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if probe {
		g.probing = false
	}
	switch {
	case err == nil:
		g.fails, g.reason, g.replied = 0, nil, g.now()
	case errors.Is(err, ErrRefused), errors.Is(err, ErrInvalid):
		g.fails, g.reason = 0, nil // the endpoint works
	case Outage(err), errors.Is(err, ErrMalformed):
		if g.fails > 0 && !probe { // under way when the pause began
			return max(g.until.Sub(g.now()), 0)
		}
		pause = g.pauseFor(err)
		g.fails++
		g.reason, g.until = err, g.now().Add(pause)
	}
	return pause
}

// pauseFor is how long to leave the endpoint alone. An error that lasts until an
// operator acts is tried again after the longest pause.
func (g *Governor) pauseFor(err error) time.Duration {
	pause := g.limits.BackoffMost
	if !errors.Is(err, ErrQuota) && !errors.Is(err, ErrDenied) && g.fails < 32 {
		pause = min(pause, g.limits.Backoff<<g.fails)
		if pause <= 0 {
			pause = g.limits.BackoffMost
		}
	}
	pause = g.jitter(pause)
	if after, ok := RetryAfter(err); ok {
		pause = max(pause, min(after, time.Hour))
	}
	return pause
}

// jitter is d, up to a fifth longer, so that callers do not come back together.
func (*Governor) jitter(d time.Duration) time.Duration {
	return d + time.Duration(rand.Float64()*float64(d)/5)
}

func (g *Governor) count(reply Reply, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.state.Calls++
	if err != nil {
		g.state.Failed++
	}
	g.state.Input += uint64(max(reply.InputTokens, 0))
	g.state.Output += uint64(max(reply.OutputTokens, 0))
}
