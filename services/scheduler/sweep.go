package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"palimpsest/internal/store"
	"palimpsest/pkg/events"
)

// maxSweepTicks bounds the ticks of one run; the next follows at once.
const maxSweepTicks = 1024

// maxSweepFailures bounds the scopes that a run passes over because they cannot
// be looked at: as many in a row are a store's that is away.
const maxSweepFailures = 16

// sweep looks at every scope with pending episodes, rule by rule: it finds the
// scopes of lost wake-ups, serves cron rules, and issues overdue ticks again. The
// scopes that wait for a slot come before those that it finds. The first sweep of a
// process publishes the claimed ticks again, under the same ids: one that is still
// in its stream makes no second tick, and one that was lost with the process before
// need not wait until it is overdue.
func (s *Service) sweep(ctx context.Context, now time.Time) ([]events.Payload, error) {
	var out []events.Payload
	s.relieve(ctx)
	v := s.resumed.visit()
	for _, r := range s.rules {
		ticks, err := s.sweepRule(ctx, r, now, v, maxSweepTicks-len(out))
		out = append(out, ticks...)
		if err != nil {
			return settled(out, fmt.Errorf("rule %s: %w", r.ID, err))
		}
		if len(out) >= maxSweepTicks {
			nudge(s.sweepAgain)
			return out, nil
		}
	}
	s.resumed.end()
	ticks, err := s.serve(ctx, "", maxSweepTicks-len(out))
	return settled(append(out, ticks...), err)
}

// sweepRule issues at most n ticks; where it stops short, the rule's fire stays
// open.
func (s *Service) sweepRule(ctx context.Context, r rule, now time.Time, v visit, n int) ([]events.Payload, error) {
	if err := s.openFire(ctx, r, now); err != nil {
		return nil, err
	}
	states, err := s.pending(ctx, r)
	if err != nil {
		return nil, err
	}
	for _, state := range states {
		if to := state.Claim.Range.To; to > state.Watermarks[r.ID] {
			s.slots.hold(claimed{state.Scope, r.ID}, to)
		}
	}
	var out []events.Payload
	var failed []error
	for _, state := range states {
		if len(out) >= n || len(failed) >= maxSweepFailures {
			return out, errors.Join(failed...)
		}
		t, err := s.tick(ctx, r, state, v)
		switch {
		case errors.Is(err, errFull):
			if s.await(ctx, r, state.State) {
				s.swept[queue{state.Scope.Project, r.ID}] = state.Scope
			}
		case err != nil:
			failed = append(failed, fmt.Errorf("%s: %w", state.Scope, err))
		}
		out = append(out, payloads(t)...)
	}
	if len(failed) > 0 {
		return out, errors.Join(failed...)
	}
	return out, s.closeFire(ctx, r, now)
}

// turnTo lets the sweep begin after the last scope of a project that it queued:
// where there are more scopes than a queue holds, each has its turn.
func (s *Service) turnTo(rule string, states []store.Pending) []store.Pending {
	q := queue{states[0].Scope.Project, rule}
	last, swept := s.swept[q]
	if !swept || len(states) <= s.waiting.most {
		delete(s.swept, q)
		return states
	}
	at, found := slices.BinarySearchFunc(states, last.Key(), func(state store.Pending, key string) int {
		return strings.Compare(state.Scope.Key(), key)
	})
	if found {
		at++
	}
	return slices.Concat(states[at:], states[:at])
}

// pending lists the scopes above a rule's watermark, projects in turns, in each
// of them those first whose turn it is.
func (s *Service) pending(ctx context.Context, r rule) ([]store.Pending, error) {
	var projects [][]store.Pending
	err := s.deps.Schedule.Pending(ctx, r.ID, func(state store.Pending) bool {
		if !possible(r, state) {
			return true
		}
		// Other rules' watermarks are not needed, and there may be many scopes.
		state.Watermarks = map[string]uint64{r.ID: state.Watermarks[r.ID]}
		n := len(projects)
		if n == 0 || projects[n-1][0].Scope.Project != state.Scope.Project {
			projects = append(projects, nil)
			n++
		}
		projects[n-1] = append(projects[n-1], state)
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("list pending scopes of rule %s: %w", r.ID, err)
	}
	for i, states := range projects {
		projects[i] = s.turnTo(r.ID, states)
	}
	return inTurns(projects), nil
}

// possible reports whether there may be anything to do, as far as the state tells:
// the rule may be due, or a tick of it overdue.
func possible(r rule, state store.Pending) bool {
	at := situation{last: state.LastOrdinal, watermark: state.Watermarks[r.ID]}
	return r.Cadence.SessionEnd && state.Ended || state.Claim.Range.To > at.watermark ||
		r.cron != nil || byCount(r.Cadence, at)
}
