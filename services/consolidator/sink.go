package consolidator

import (
	"context"
	"errors"
	"fmt"

	"palimpsest/internal/audit"
	"palimpsest/internal/pipeline"
	"palimpsest/pkg/events"
)

// sink copies effects into the audit log, which knows those it has. One of
// another history than the log's can never be written: it becomes a dead letter,
// and keeps no other scope's from the log. It leaves out what was erased.
func (s *Service) sink(ctx context.Context, in []*pipeline.Entry) error {
	var entries []*pipeline.Entry
	var effects []events.Event[events.EffectCommitted]
	for _, e := range in {
		if e.Err != nil || e.Meta.Kind != events.KindEffectCommitted {
			continue // AUDIT keeps other events, too
		}
		effect, err := pipeline.DecodeEntry[events.EffectCommitted](e)
		if err != nil {
			e.Err = err
			continue
		}
		if of := effect.Data; of.Incarnation < s.deps.Born(of.Scope.Project, of.Scope.User) {
			continue
		}
		entries, effects = append(entries, e), append(effects, effect)
	}
	if len(effects) == 0 {
		return nil
	}
	err := s.log(ctx, effects)
	if len(effects) == 1 {
		entries[0].Err = err
		return nil
	}
	if !pipeline.IsRefused(err) {
		return err
	}
	failed := map[string]error{}
	for i, e := range entries {
		if e.Err = failed[e.Key]; e.Err != nil {
			continue
		}
		if e.Err = s.log(ctx, effects[i:i+1]); e.Err != nil && !pipeline.IsRefused(e.Err) {
			failed[e.Key] = e.Err
		}
	}
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
