package consolidator

import (
	"context"
	"fmt"

	"palimpsest/pkg/events"
)

// sink copies effects into the audit log, which knows those it has.
func (s *Service) sink(ctx context.Context, in []events.Event[events.EffectCommitted]) error {
	if err := s.deps.Log.Write(ctx, in); err != nil {
		return fmt.Errorf("write audit log: %w", err)
	}
	return nil
}
