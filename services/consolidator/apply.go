package consolidator

import (
	"context"
	"errors"
	"fmt"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// RollForward applies the effects of a fact scope that AUDIT holds and the
// store lacks. It is what heals a crash between commit and apply, a store that
// lost acknowledged writes, and a restored backup.
func (s *Service) RollForward(ctx context.Context, fact scope.Scope) error {
	_, err := s.rollForward(ctx, fact)
	return err
}

// rollForward also returns the outcomes of the effects that it applied. The process
// that committed them may have died before it announced them.
func (s *Service) rollForward(ctx context.Context, fact scope.Scope) ([]events.Payload, error) {
	state, err := s.deps.Applier.State(ctx, fact)
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	var outcomes []events.Payload
	at := reached{state.Scope: state.Revision}
	for e, err := range s.deps.Journal.ReadScope(ctx, fact, state.AuditSeq) {
		if err != nil {
			return nil, unread(err)
		}
		applied, err := s.reach(ctx, at, e)
		if err != nil {
			return nil, fmt.Errorf("roll forward to revision %d: %w", e.Data.Revision, unread(err))
		}
		for _, effect := range applied {
			outcomes = append(outcomes, announce(effect)...)
		}
	}
	return outcomes, nil
}

// unread hides what err refuses. It is about an effect that AUDIT holds, perhaps
// one of a newer version, and no reason to bury the message at hand.
func unread(err error) error {
	if gap := (*GapError)(nil); errors.As(err, &gap) {
		return err
	}
	return fmt.Errorf("read audit: %v", err) //nolint:errorlint // see above
}

func announce(e events.EffectCommitted) []events.Payload {
	out := make([]events.Payload, 0, len(e.Outcomes))
	for _, o := range e.Outcomes {
		if o.CorrelationID != "" {
			out = append(out, events.OutcomeAnnounced{Header: e.Header, Outcome: o})
		}
	}
	return out
}

// loadEarlier reads the history of facts that are closed and about to get a new
// version: reopening one links the entities that closing it unlinked.
func (s *Service) loadEarlier(ctx context.Context, plan *memory.PlanInput) error {
	updated := map[string]bool{}
	for _, d := range plan.Batch.Deltas {
		if u, ok := d.(events.Update); ok {
			updated[u.Replaces()[0]] = true
		}
	}
	for _, f := range plan.Facts {
		if !updated[f.ID] || f.ValidUntil == nil || len(f.EntityIDs) > 0 {
			continue
		}
		versions, err := s.deps.Facts.Versions(ctx, scope.Exactly(plan.Batch.Scope), f.ID)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("read versions: %w", err)
		}
		for _, v := range versions {
			plan.Earlier = append(plan.Earlier, v.Fact)
		}
	}
	return nil
}
