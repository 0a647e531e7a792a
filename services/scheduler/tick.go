package scheduler

import (
	"context"
	"errors"
	"fmt"

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
	woken visit = iota
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
	at := situation{last: state.LastOrdinal, watermark: state.Watermarks[r.ID]}
	if at.last <= at.watermark {
		return nil, nil
	}
	if err := s.ask(ctx, r, of, &at); err != nil {
		return nil, err
	}
	wanted, isDue := due(r.Cadence, at)
	if !isDue && v != sweeping && v != resuming {
		return nil, nil
	}
	now := s.deps.Now()
	switch judge(standing, at.watermark, now, s.cfg.Overdue, s.cfg.OverdueMost) {
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
func (s *Service) ask(ctx context.Context, r rule, of store.Pending, at *situation) error {
	var err error
	if r.Cadence.SessionEnd && of.Ended {
		if at.ends, err = s.deps.Schedule.EndsAbove(ctx, of.Scope, at.watermark); err != nil {
			return fmt.Errorf("list session ends: %w", err)
		}
	}
	if r.cron != nil {
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
		s.slots.settle(project, r.ID, false)
		return nil, err
	}
	t, err := s.claim(ctx, r, state, at, standing, store.Claim{Range: bounded, At: now})
	s.slots.settle(project, r.ID, t != nil)
	return t, err
}

// claim sets the row and returns its tick; nil if another replica was faster.
func (s *Service) claim(ctx context.Context, r rule, state memory.State, at situation, standing, next store.Claim) (*events.TickIssued, error) {
	_, mine, err := s.deps.Schedule.Claim(ctx, state.Scope, r.ID, standing, next)
	if err != nil {
		return nil, fmt.Errorf("claim: %w", err)
	}
	if !mine {
		return nil, nil
	}
	failpoint.Reach(failpoint.Scheduler, failpoint.Claimed)
	return s.compose(ctx, r, state, at, next)
}

// compose returns the tick of a claim.
func (s *Service) compose(ctx context.Context, r rule, state memory.State, at situation, c store.Claim) (*events.TickIssued, error) {
	carried := endsIn(r.Cadence, at.ends, c.Range)
	t := &events.TickIssued{
		Batch: events.Batch{
			Header:  events.Header{Scope: state.Scope, Incarnation: state.Incarnation},
			Rule:    r.ID,
			Class:   r.Class,
			Range:   c.Range,
			Cause:   causeOf(r.Cadence, at, carried),
			Attempt: c.Attempt,
		},
		SessionEnds: carried,
	}
	if s.requested == nil || r.ID != s.answering {
		return t, nil
	}
	first, err := s.deps.Episodes.EpisodeRange(ctx, state.Scope, events.Range{From: c.Range.From, To: c.Range.From + 1})
	if err != nil {
		return nil, fmt.Errorf("read the first episode: %w", err)
	}
	if of := memory.AskedAt(first, c.Range.From+1); of.Request {
		t.As, t.Class, t.Cause, t.Prompt = s.requested.ID, s.requested.Class, events.CauseRequest, of.Prompt
	}
	return t, nil
}

// bytesPerToken is a low estimate for any tokenizer and language.
const bytesPerToken = 4

// fitChunk episodes are read at a time, to bound memory: they may be large.
const fitChunk = 25

// fit bounds a range to TickEpisodes and TickTokens; one episode always fits. A range
// of the rule that answers ends before an episode that asks for something else than
// its first one.
func (s *Service) fit(ctx context.Context, of rule, fact scope.Scope, r events.Range) (events.Range, error) {
	split := s.requested != nil && of.ID == s.answering
	r = cut(r, s.cfg.TickEpisodes)
	left := s.cfg.TickTokens * bytesPerToken
	var first memory.Asked
	for from := r.From; r.Len() > 1 && from < r.To; {
		chunk := cut(events.Range{From: from, To: r.To}, fitChunk)
		episodes, err := s.deps.Episodes.EpisodeRange(ctx, fact, chunk)
		if err != nil {
			return r, fmt.Errorf("measure range: %w", err)
		}
		if from == r.From {
			first = memory.AskedAt(episodes, from+1)
		}
		for _, e := range episodes {
			if split && e.Asked() != first {
				r.To = max(e.Ordinal-1, r.From+1)
				return r, nil
			}
			if left -= len(e.Content); left < 0 {
				r.To = max(e.Ordinal-1, r.From+1)
				return r, nil
			}
		}
		from = chunk.To
	}
	return r, nil
}
