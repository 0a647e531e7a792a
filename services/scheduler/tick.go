package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"palimpsest/internal/failpoint"
	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// errFull: the project has no slot for another tick.
var errFull = errors.New("no slot is free")

// visit says what led to a look at a scope.
type visit int

const (
	// said: something was stored. A cron rule waits for older episodes, which the sweep
	// finds; a check here would take a read for each episode.
	said visit = iota
	woken
	// called: it waited for a slot, and its turn has come.
	called
	// wokenAgain: the message that led here is seen a second time, so a tick
	// that it claimed may not have been published.
	wokenAgain
	// sweeping also issues overdue ticks again.
	sweeping
	// resuming is sweeping by a process that has just started: the one before may
	// have died between a claim and its tick.
	resuming
)

// tick issues the next tick of a rule in a scope, or nil if there is none to
// issue now. It returns errFull where the rule is due and the project has no
// slot.
//
// The claim that was read with the state serves: the next claim names it, and is
// refused where another stands by then.
func (s *Service) tick(ctx context.Context, r rule, of store.Pending, v visit) (*events.TickIssued, error) {
	state, standing := of.State, of.Claim
	at := situation{last: state.LastOrdinal, watermark: state.Watermarks[r.ID], unrequested: of.Unrequested}
	at.run = s.runs.of(claimed{state.Scope, r.ID}, at.watermark, state.Incarnation)
	if !r.Enabled && at.run == 0 {
		return nil, nil
	}
	if at.last <= at.watermark {
		return nil, nil
	}
	if err := s.ask(ctx, r, of, &at, v); err != nil {
		return nil, err
	}
	wanted, isDue := due(r.Cadence, at)
	if !isDue && v != sweeping && v != resuming {
		return nil, nil
	}
	now := s.deps.Now()
	found := judge(standing, at.watermark, now, s.cfg.Overdue, s.cfg.OverdueMost)
	if found != claimFree && at.last > standing.Range.To {
		s.lagging.add(state.Scope, state.Revision+1, now)
	}
	switch found {
	case claimTaken:
		again := v == wokenAgain || v == resuming && standing.At.Before(s.began) && s.resumed.first(claimed{state.Scope, r.ID})
		if again && standing.Range.From == at.watermark {
			return s.compose(ctx, r, state, at, standing)
		}
		return nil, nil
	case claimLate:
		s.late.note(claimed{state.Scope, r.ID}, now)
		next := successor(standing, at.watermark, now, s.cfg.TickEpisodes)
		return s.claim(ctx, r, state, at, standing, next)
	}
	if !isDue {
		return nil, nil
	}
	if v != called && s.waiting.occupied(queue{state.Scope.Project, r.ID}) {
		return nil, errFull
	}
	return s.issue(ctx, r, state, at, wanted, standing)
}

// ask reads what the cadence needs and of does not tell.
func (s *Service) ask(ctx context.Context, r rule, of store.Pending, at *situation, v visit) error {
	var err error
	if r.Cadence.SessionEnd && of.Ended {
		if at.ends, err = s.deps.Schedule.EndsAbove(ctx, of.Scope, at.watermark); err != nil {
			return fmt.Errorf("list session ends: %w", err)
		}
	}
	if r.cron != nil && v != said {
		at.fired, err = s.fired(ctx, r, of.Scope, at.watermark)
	}
	return err
}

// issue claims a new range, if the project has a slot for it.
func (s *Service) issue(ctx context.Context, r rule, state memory.State, at situation, wanted events.Range, standing store.Claim) (*events.TickIssued, error) {
	now := s.deps.Now()
	project := state.Scope.Project
	switch ok, err := s.slots.take(ctx, project, r.ID, now); {
	case err != nil:
		return nil, err
	case !ok:
		return nil, errFull
	}
	bounded, err := s.fit(ctx, r, state.Scope, wanted)
	if err != nil {
		s.slots.settle(project, r.ID)
		return nil, err
	}
	if may, err := s.mayAsk(ctx, r, state.Scope, at, bounded, now); err != nil || !may {
		s.slots.settle(project, r.ID)
		return nil, err
	}
	t, err := s.claim(ctx, r, state, at, standing, store.Claim{Range: bounded, At: now})
	s.slots.settle(project, r.ID)
	return t, err
}

// claim sets the row and returns its tick; nil if another replica was faster.
func (s *Service) claim(ctx context.Context, r rule, state memory.State, at situation, standing, next store.Claim) (*events.TickIssued, error) {
	_, mine, err := s.deps.Schedule.Claim(ctx, state.Scope, r.ID, standing, next)
	if err != nil {
		return nil, fmt.Errorf("claim: %w", err)
	}
	if !mine || at.last > next.Range.To {
		s.lagging.add(state.Scope, state.Revision+1, next.At) // there is more than the claim that stands covers
	}
	if !mine {
		return nil, nil
	}
	s.slots.hold(claimed{state.Scope, r.ID}, next.Range.To)
	failpoint.Reach(failpoint.Scheduler, failpoint.Claimed)
	return s.compose(ctx, r, state, at, next)
}

// compose returns the tick of a claim.
func (s *Service) compose(ctx context.Context, r rule, state memory.State, at situation, c store.Claim) (*events.TickIssued, error) {
	carried := memory.EndsIn(r.Rule, at.ends, c.Range)
	of, err := s.asked(ctx, r, state.Scope, at, c.Range)
	t := memory.TickOf(state, r.Rule, c.Range, carried, causeOf(r.Cadence, at, carried))
	t.Attempt = c.Attempt
	if of.Request {
		memory.HandOver(&t, *s.requested, of)
	}
	return &t, err
}

// asked returns what the episodes of a range of a rule ask for. The range begins at the
// watermark or above, so where no episode above it is a request, nothing is read.
func (s *Service) asked(ctx context.Context, r rule, fact scope.Scope, at situation, over events.Range) (memory.Asked, error) {
	if s.requested == nil || r.ID != s.answering || at.unrequested && over.From >= at.watermark {
		return memory.Asked{}, nil
	}
	first, err := s.deps.Episodes.EpisodeRange(ctx, fact, events.Range{From: over.From, To: over.From + 1})
	if err != nil {
		return memory.Asked{}, fmt.Errorf("read the first episode: %w", err)
	}
	return memory.AskedAt(first, over.From+1), nil
}

// mayAsk reports whether a range may be claimed: those that a model is to read have
// half of the slots.
func (s *Service) mayAsk(ctx context.Context, r rule, fact scope.Scope, at situation, over events.Range, now time.Time) (bool, error) {
	if s.requested == nil || s.requested.Class != events.ClassModel || r.ID != s.answering {
		return true, nil
	}
	of, err := s.asked(ctx, r, fact, at, over)
	if err != nil || !of.Request {
		return err == nil, err
	}
	most := max(1, s.cfg.Slots/2)
	if s.requests.begin(fact, over.To, most) {
		return true, nil
	}
	if err := s.relieveRequests(ctx, fact.Project, now); err != nil {
		return false, fmt.Errorf("look at requests under way: %w", err)
	}
	return s.requests.begin(fact, over.To, most), nil
}

// fit bounds a range to TickEpisodes and TickTokens, see [memory.Fit].
func (s *Service) fit(ctx context.Context, of rule, fact scope.Scope, r events.Range) (events.Range, error) {
	most := memory.Bounds{Episodes: s.cfg.TickEpisodes, Tokens: s.cfg.TickTokens}
	return memory.Fit(ctx, s.deps.Episodes.EpisodeRange, fact, r, most, s.requested != nil && of.ID == s.answering)
}
