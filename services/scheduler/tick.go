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
	if may, err := s.mayAsk(ctx, r, state.Scope, bounded, now); err != nil || !may {
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
	of, err := s.asked(ctx, r, state.Scope, c.Range)
	if err == nil && of.Request {
		t.As, t.Class, t.Cause, t.Prompt = s.requested.ID, s.requested.Class, events.CauseRequest, of.Prompt
	}
	return t, err
}

// asked returns what the episodes of a range of a rule ask for.
func (s *Service) asked(ctx context.Context, r rule, fact scope.Scope, over events.Range) (memory.Asked, error) {
	if s.requested == nil || r.ID != s.answering {
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
func (s *Service) mayAsk(ctx context.Context, r rule, fact scope.Scope, over events.Range, now time.Time) (bool, error) {
	if s.requested == nil || s.requested.Class != events.ClassModel || r.ID != s.answering {
		return true, nil
	}
	of, err := s.asked(ctx, r, fact, over)
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
