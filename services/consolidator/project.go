package consolidator

import (
	"context"
	"fmt"

	"palimpsest/pkg/events"
)

// project tails AUDIT: a scope that lacks the effect is rolled forward.
func (s *Service) project(ctx context.Context, in events.Event[events.EffectCommitted]) ([]events.Payload, error) {
	state, err := s.deps.Applier.State(ctx, in.Data.Scope)
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	if state.Revision >= in.Data.Revision || in.Data.Incarnation < state.Incarnation {
		return nil, nil
	}
	return s.rollForward(ctx, in.Data.Scope)
}
