package consolidator

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"palimpsest/internal/audit"
	"palimpsest/internal/pipeline"
	"palimpsest/pkg/events"
)

// sink copies effects into the audit log, which knows those it has. One of
// another history than the log's can never be written: it becomes a dead letter,
// and keeps no other scope's from the log.
func (s *Service) sink(ctx context.Context, in []events.Event[events.EffectCommitted]) error {
	if err := s.refill(ctx); err != nil {
		return err
	}
	if err := s.log(ctx, in); err != nil {
		s.unwritten()
		return err
	}
	s.wrote(in)
	return nil
}

func (s *Service) log(ctx context.Context, in []events.Event[events.EffectCommitted]) error {
	err := s.deps.Log.Write(ctx, in)
	if errors.Is(err, audit.ErrOtherHistory) {
		return pipeline.Reject(events.CodeIDConflict, "revision", fmt.Errorf("write audit log: %w", err))
	}
	if err != nil {
		return fmt.Errorf("write audit log: %w", err)
	}
	return nil
}

// CatchUp copies into the audit log what AUDIT holds behind a sequence, in
// order, and returns how much that was. A log that was restored from an older
// copy, or lost, lacks effects that the sink has acknowledged and is handed no
// more; it must have them back before the sink moves its end on. What the log
// refuses keeps nothing else from it; the error then names the first.
func (s *Service) CatchUp(ctx context.Context, from audit.Tail, after uint64) (copied int, err error) {
	var batch []events.Event[events.EffectCommitted]
	var refused error
	flush := func() error {
		n, err := s.copyBatch(ctx, batch)
		copied, batch = copied+n, batch[:0]
		if pipeline.IsReject(err) {
			refused, err = cmp.Or(refused, err), nil
		}
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
	if err := flush(); err != nil {
		return copied, err
	}
	return copied, refused
}

// CopyOne copies into the audit log the effect that stands at a sequence of AUDIT,
// and reports whether AUDIT holds it.
func (s *Service) CopyOne(ctx context.Context, from audit.Tail, sequence uint64) (found bool, err error) {
	for e, err := range from.All(ctx, sequence-1) {
		if err != nil {
			return false, fmt.Errorf("read audit: %w", err)
		}
		if e.Sequence != sequence {
			break
		}
		return true, s.log(ctx, []events.Event[events.EffectCommitted]{e})
	}
	return false, nil
}

// copyBatch writes effects at once, or each by itself where one is refused. It
// returns how many the log took, and the first refusal.
func (s *Service) copyBatch(ctx context.Context, batch []events.Event[events.EffectCommitted]) (copied int, err error) {
	if len(batch) == 0 {
		return 0, nil
	}
	err = s.log(ctx, batch)
	switch {
	case err == nil:
		return len(batch), nil
	case !pipeline.IsReject(err):
		return 0, err
	}
	for i := range batch {
		switch one := s.log(ctx, batch[i:i+1]); {
		case one == nil:
			copied++
		case !pipeline.IsReject(one):
			return copied, one
		}
	}
	return copied, err
}
