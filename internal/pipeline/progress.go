package pipeline

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// StallAfter is how long a stage may have work and pass nothing, and one scope may
// keep a handler, before they count as stalled.
const StallAfter = 15 * time.Second

// maxStalledScopes bounds the scopes that are told by name.
const maxStalledScopes = 10

// Progress is how far one stage is.
type Progress struct {
	Service, Stage string
	// Stream is that which it reads, with a durable consumer or, as a log, with cursors:
	// then Consumer is the name of the log.
	Stream, Consumer string
	// Pending messages were not handed out yet; Unacked were, to any replica, and are not
	// answered. Of a log they are those of the partitions that this process reads.
	Pending, Unacked uint64
	// Runnable counts the messages that the stage may handle now: those in its
	// stream and those it holds. A reader with a cursor counts from the cursor on.
	Runnable uint64
	// Delayed waits for its next attempt, and is no part of Runnable.
	Delayed uint64
	// Passed grows with each message that is done. A cursor will do.
	Passed uint64
	// Scopes have had a handler for as long as they say.
	Scopes []BusyScope
}

// BusyScope is a fact scope one of whose messages is in a handler. Scope is the
// scope's key.
type BusyScope struct {
	Scope string
	Since time.Time
}

// advancing is a runner that reports its progress.
type advancing interface {
	progress(ctx context.Context) (Progress, error)
}

// askAtOnce bounds the questions under way to the broker.
const askAtOnce = 8

// Progress returns the progress of each stage that reads a stream; there are none
// before the runtime runs. It leaves out those that fail; the error is that of the first.
func (rt *Runtime) Progress(ctx context.Context) ([]Progress, error) {
	rt.mu.Lock()
	stages := slices.Clone(rt.advancing)
	rt.mu.Unlock()
	found := make([]Progress, len(stages))
	var asking errgroup.Group
	asking.SetLimit(askAtOnce)
	for i, s := range stages {
		asking.Go(func() (err error) {
			found[i], err = s.progress(ctx)
			return err
		})
	}
	err := asking.Wait()
	return slices.DeleteFunc(found, func(p Progress) bool { return p.Stage == "" }), err
}

// progress counts the messages held here and those that the consumer has for any
// replica.
func (w *worker) progress(ctx context.Context) (Progress, error) {
	info, err := w.binding.consumer.Info(ctx)
	if err != nil {
		return Progress{}, fmt.Errorf("pipeline: ask how far %s is: %w", w.binding.name, err)
	}
	did := w.meter.snapshot()
	p := Progress{
		Service: w.service, Stage: did.Stage, Stream: w.binding.stream, Consumer: w.binding.name,
		Pending: info.NumPending, Unacked: uint64(max(info.NumAckPending, 0)),
		Runnable: info.NumPending, Passed: did.Handled + did.Buried,
	}
	w.dispatcher.each(func(d *delivery) {
		if d.state == parked {
			p.Delayed++
			return
		}
		p.Runnable++
		if d.state == running {
			p.Scopes = append(p.Scopes, BusyScope{d.key, d.started})
		}
	})
	return p, nil
}

// Stalls lists the stages and scopes that a [Tracker] has found stalled.
type Stalls struct {
	// Stages have work and have passed nothing for [StallAfter].
	Stages []string
	// Scopes are the first few that have kept a handler for that long, and
	// ScopeCount is how many there are.
	Scopes     []string
	ScopeCount int
	// Delayed counts, by stage, the messages that wait for another attempt.
	Delayed map[string]uint64
}

// Tracker finds stalled stages from their successive progress. It logs the beginning
// and the end of each stall.
type Tracker struct {
	now   func() time.Time
	log   *slog.Logger
	after time.Duration

	mu     sync.Mutex
	seen   time.Time
	stages map[string]*course
	scopes map[string]bool // stalled, and told of
	found  Stalls
}

// course is the state of one stage.
type course struct {
	passed  uint64
	since   time.Time // it has had work and passed nothing; zero where it has none
	stalled bool
	delayed time.Time // when last seen; zero where that is long ago
}

// NewTracker returns a tracker without observations. now is its clock. Observe
// must be called more often than [StallAfter].
func NewTracker(now func() time.Time, log *slog.Logger) *Tracker {
	return &Tracker{now: now, log: log, after: StallAfter, stages: make(map[string]*course), scopes: make(map[string]bool)}
}

// Stalls returns the stalls that Observe found last.
func (t *Tracker) Stalls() Stalls {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.found
}

// Observe takes the present progress of the stages. A stage that is absent keeps its
// state. After a pause of the process itself, all stages start again.
func (t *Tracker) Observe(stages []Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if now.Sub(t.seen) >= t.after {
		for _, c := range t.stages {
			c.since = time.Time{}
		}
	}
	t.seen = now
	found := Stalls{Delayed: make(map[string]uint64)}
	busy := make(map[string]bool)
	for _, p := range stages {
		t.stage(p, now)
		if p.Delayed > 0 {
			found.Delayed[p.Stage] = p.Delayed
		}
		for _, s := range p.Scopes {
			if now.Sub(s.Since) >= t.after {
				busy[s.Scope] = true
				t.scope(p, s, now)
			}
		}
	}
	for name, c := range t.stages {
		if c.stalled {
			found.Stages = append(found.Stages, name)
		}
	}
	for name := range t.scopes {
		if !busy[name] {
			delete(t.scopes, name)
			t.log.Info("scope makes progress again", "scope", name)
		} else {
			found.Scopes = append(found.Scopes, name)
		}
	}
	slices.Sort(found.Stages)
	slices.Sort(found.Scopes)
	found.ScopeCount = len(found.Scopes)
	found.Scopes = found.Scopes[:min(len(found.Scopes), maxStalledScopes)]
	t.found = found
}

// stage judges one.
func (t *Tracker) stage(p Progress, now time.Time) {
	c := t.stages[p.Stage]
	if c == nil {
		c = &course{passed: p.Passed}
		t.stages[p.Stage] = c
	}
	switch moved := p.Passed != c.passed; {
	case p.Runnable == 0:
		c.since = time.Time{}
	case moved || c.since.IsZero():
		c.since = now
	}
	c.passed = p.Passed
	stalled := !c.since.IsZero() && now.Sub(c.since) >= t.after
	log := t.log.With("service", p.Service, "stage", p.Stage)
	switch {
	case stalled && !c.stalled:
		log.Error("stage makes no progress", "runnable", p.Runnable, "delayed", p.Delayed, "for", now.Sub(c.since).Round(time.Second))
	case c.stalled && !stalled:
		log.Info("stage makes progress again")
	}
	c.stalled = stalled
	switch {
	case p.Delayed > 0:
		if c.delayed.IsZero() {
			log.Warn("work waits for another attempt", "messages", p.Delayed)
		}
		c.delayed = now
	case now.Sub(c.delayed) >= t.after:
		c.delayed = time.Time{}
	}
}

func (t *Tracker) scope(p Progress, s BusyScope, now time.Time) {
	if !t.scopes[s.Scope] {
		t.scopes[s.Scope] = true
		t.log.Warn("scope makes no progress", "service", p.Service, "stage", p.Stage, "scope", s.Scope, "for", now.Sub(s.Since).Round(time.Second))
	}
}
