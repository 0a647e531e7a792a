package consolidator

import (
	"context"
	"fmt"

	"palimpsest/internal/audit"
	"palimpsest/pkg/events"
)

// sink copies effects into the audit log, which knows those it has.
func (s *Service) sink(ctx context.Context, in []events.Event[events.EffectCommitted]) error {
	if err := s.deps.Log.Write(ctx, in); err != nil {
		return fmt.Errorf("write audit log: %w", err)
	}
	return nil
}

// CatchUp copies into the audit log what AUDIT holds behind a sequence, in
// order, and returns how much that was. A log that was restored from an older
// copy, or lost, lacks effects that the sink has acknowledged and is handed no
// more; it must have them back before the sink moves its end on.
func (s *Service) CatchUp(ctx context.Context, from audit.Tail, after uint64) (copied int, err error) {
	var batch []events.Event[events.EffectCommitted]
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		err := s.sink(ctx, batch)
		copied += len(batch)
		batch = batch[:0]
		return err
	}
	for e, err := range from.All(ctx, after) {
		if err != nil {
			return copied, fmt.Errorf("read audit: %w", err)
		}
		if batch = append(batch, e); len(batch) >= s.cfg.SinkSize {
			if err := flush(); err != nil {
				return copied, err
			}
		}
	}
	return copied, flush()
}
