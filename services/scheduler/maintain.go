package scheduler

import (
	"context"
	"fmt"
	"slices"
	"time"

	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// maxUpkeep bounds the facts that are under maintenance at a time.
const maxUpkeep = 1000

// maintain issues the ticks of the maintenance rules that fired. What is due follows
// from the store: a fact that was pruned is not due again. The store's order is the
// cursor, so a run that was stopped goes on where it stood, and a second one
// finds nothing.
func (s *Service) maintain(ctx context.Context, now time.Time) ([]events.Payload, error) {
	var out []events.Payload
	for _, r := range s.upkeep {
		ticks, err := s.upkeepTicks(ctx, r, now)
		out = append(out, ticks...)
		if err != nil {
			return settled(out, fmt.Errorf("rule %s: %w", r.ID, err))
		}
	}
	return out, nil
}

func (s *Service) upkeepTicks(ctx context.Context, r rule, now time.Time) ([]events.Payload, error) {
	if err := s.openFire(ctx, r, now); err != nil {
		return nil, err
	}
	f, open := s.fires.get(r.ID)
	if !open {
		return nil, nil
	}
	var out []events.Payload
	left := 0
	for _, step := range r.Steps {
		due, err := s.deps.Schedule.Decayed(ctx, store.DecayQuery{At: f.at, Limit: maxUpkeep})
		if err != nil {
			return out, fmt.Errorf("list decayed facts: %w", err)
		}
		left += len(due)
		out = append(out, s.composeUpkeep(r, step, due, now)...)
	}
	if left > 0 {
		return out, nil
	}
	if err := s.deps.Schedule.SetLastFire(ctx, r.ID, f.at); err != nil {
		return out, fmt.Errorf("store last fire: %w", err)
	}
	s.fires.remove(r.ID)
	return out, nil
}

// composeUpkeep makes the ticks of one step, some for each scope, over the facts that are
// not under way.
func (s *Service) composeUpkeep(r rule, step string, due []store.Decayed, now time.Time) []events.Payload {
	var order []scope.Scope
	byScope := map[scope.Scope][]string{}
	incarnation := map[scope.Scope]uint64{}
	for _, d := range due {
		if !s.tended.first(announcement{scope: d.Scope, ordinal: d.Incarnation, hold: step + d.ID}, now) {
			continue
		}
		if byScope[d.Scope] == nil {
			order = append(order, d.Scope)
		}
		byScope[d.Scope] = append(byScope[d.Scope], d.ID)
		incarnation[d.Scope] = d.Incarnation
	}
	var out []events.Payload
	for _, fact := range order {
		for ids := range slices.Chunk(byScope[fact], events.MaxUpkeepFacts) {
			out = append(out, events.TickIssued{Batch: events.Batch{
				Header: events.Header{Scope: fact, Incarnation: incarnation[fact]}, Rule: r.ID, Cause: events.CauseMaintenance,
				Upkeep: &events.Upkeep{Step: step, FactIDs: ids, At: now.Truncate(time.Microsecond)},
			}})
		}
	}
	return out
}
