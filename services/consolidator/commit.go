package consolidator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"palimpsest/internal/audit"
	"palimpsest/internal/failpoint"
	"palimpsest/internal/memory"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
)

// errBusy: other writers of the scope kept getting ahead; a redelivery settles
// it.
var errBusy = errors.New("consolidator: the scope keeps changing")

// commit judges a decided batch, commits its effect and applies it. What
// follows is the outcomes, or, where the basis went stale, the candidates or the
// command.
func (s *Service) commit(ctx context.Context, in events.Event[events.DeltasDecided]) ([]events.Payload, error) {
	if in.Data.Upkeep != nil && len(in.Data.Deltas) == 0 {
		return nil, nil // nothing is due any more, and no watermark waits
	}
	rolled, waited := []events.Payload(nil), false
	var before []uint64 // where the row stood when AUDIT refused
	for try := range s.cfg.Conflicts {
		state, err := s.deps.Applier.State(ctx, in.Data.Scope)
		if err != nil {
			return nil, fmt.Errorf("read state: %w", err)
		}
		found, err := s.standing(ctx, state, in.Data)
		if err != nil {
			return nil, err
		}
		switch found {
		case erased:
			return nil, nil
		case old:
			return s.settled(ctx, in, rolled)
		case ahead, unborn:
			if waited {
				return s.beyond(state, in.Data, rolled)
			}
			waited = true
			outcomes, err := s.rollForward(ctx, in.Data.Scope)
			if err != nil {
				return nil, err
			}
			rolled = append(rolled, outcomes...)
			continue
		}
		outcomes, err := s.write(ctx, in, state, try > 0 || in.Delivery > 1)
		switch {
		case errors.Is(err, store.ErrIncarnation):
			return rolled, nil
		case errors.Is(err, errStale):
			if wait, ok := early(in); ok && len(rolled) == 0 {
				return nil, pipeline.Later(wait, err)
			}
			return append(rolled, again(in.Data)), nil
		case !errors.Is(err, audit.ErrConflict):
			return append(rolled, outcomes...), err
		}
		if outcomes, err = s.rollForward(ctx, in.Data.Scope); err != nil {
			return nil, err
		}
		rolled = append(rolled, outcomes...)
		before = append(before, state.AuditSeq)
	}
	if n := len(before); n > 1 && before[0] == before[n-1] {
		return nil, stuck(in.Data.Scope, before[0])
	}
	return nil, pipeline.Later(pause(1), errBusy)
}

// beyond settles a batch that is ahead of AUDIT. Of overlapping ticks only the one
// whose range begins at the watermark is applied, so one that begins above it is
// dropped. A batch with a revision or an incarnation that the row has not reached
// waits.
func (s *Service) beyond(state memory.State, b events.DeltasDecided, rolled []events.Payload) ([]events.Payload, error) {
	if b.Incarnation == state.Incarnation && memory.MovesWatermark(b) && b.Range.From > state.Watermarks[b.Rule] {
		return rolled, nil
	}
	return nil, fmt.Errorf("consolidator: batch is of revision %d, incarnation %d; the scope is at %d, %d",
		b.Basis, b.Incarnation, state.Revision, state.Incarnation)
}

// write plans the batch, appends each effect and applies it; retried says that
// an attempt was made before. It returns errStale where the batch has to be
// decided again, and audit.ErrConflict where AUDIT has effects that the row
// lacks.
func (s *Service) write(ctx context.Context, in events.Event[events.DeltasDecided], state memory.State, retried bool) ([]events.Payload, error) {
	var known []events.Payload
	var plan memory.PlanInput
	err := s.deps.Applier.ReadWhole(ctx, func() (err error) {
		if in.Data.Command != nil {
			if known, err = s.known(ctx, in); err != nil || len(known) > 0 {
				return err
			}
		}
		plan, err = s.load(ctx, in, state)
		return err
	})
	if err != nil || len(known) > 0 {
		return known, err
	}
	if retried && in.Data.Command != nil {
		if plan.Done, err = s.begun(ctx, in.Data); err != nil {
			return nil, err
		}
		if n := len(plan.Done); n > 0 {
			switch last := plan.Done[n-1]; {
			case last.Revision > state.Revision:
				return nil, audit.ErrConflict // the row lacks it
			case len(last.Outcomes) > 0:
				return announce(last), nil // whole, though its outcome is no longer kept
			}
		}
	}
	if len(plan.Done) == 0 && gone(in.Data, plan.Held) {
		plan.Conflict = "the candidate is no longer held"
	} else if len(plan.Done) == 0 {
		switch stale, err := s.stale(ctx, state, in.Data); {
		case err != nil:
			return nil, err
		case stale:
			return nil, errStale
		}
	}
	effects, err := memory.Plan(plan)
	if err != nil {
		return nil, planErr(err)
	}
	defer s.own.begin(in.Data.Scope)()
	var outcomes []events.Payload
	after := state.AuditSeq
	for _, effect := range effects {
		effect.More = effect.Watermark != nil && state.LastOrdinal > *effect.Watermark
		if after, err = s.deps.Journal.Append(ctx, metaOf(in, effect), effect, after); err != nil {
			return nil, fmt.Errorf("append effect %d: %w", effect.Revision, err)
		}
		failpoint.Reach(failpoint.Consolidator, failpoint.Appended)
		if err := s.deps.Applier.Apply(ctx, effect, after); err != nil {
			return nil, fmt.Errorf("apply effect %d: %w", effect.Revision, err)
		}
		s.report(effect)
		s.own.note(effect)
		failpoint.Reach(failpoint.Consolidator, failpoint.Applied)
		outcomes = append(outcomes, announce(effect)...)
	}
	return outcomes, nil
}

// begun returns what an attempt at the same command committed before it was
// stopped between two effects.
func (s *Service) begun(ctx context.Context, b events.DeltasDecided) ([]events.EffectCommitted, error) {
	var out []events.EffectCommitted
	for e, err := range s.deps.Journal.ReadScope(ctx, b.Scope, 0) {
		if err != nil {
			return nil, unread(err)
		}
		if e.Data.Command != nil && e.Data.Command.RequestID == b.Command.RequestID && e.Data.Incarnation == b.Incarnation {
			out = append(out, e.Data)
		}
	}
	return out, nil
}

// metaOf names an effect by its cause and revision, so that the same commit
// tried again is the same message, and no other one is.
func metaOf(in events.Event[events.DeltasDecided], effect events.EffectCommitted) events.Meta {
	return events.Meta{
		ID:            events.HashID(in.ID, string(effect.Kind()), strconv.FormatUint(effect.Revision, 10)),
		Source:        "palimpsest/consolidator",
		Kind:          effect.Kind(),
		Scope:         effect.Scope,
		Time:          in.Time,
		CorrelationID: in.CorrelationID,
		CausationID:   in.ID,
		Traceparent:   in.Traceparent,
	}
}

// load reads what the plan of a batch follows from.
func (s *Service) load(ctx context.Context, in events.Event[events.DeltasDecided], state memory.State) (memory.PlanInput, error) {
	b := in.Data
	plan := memory.PlanInput{State: state, Batch: b, At: in.Time, CorrelationID: in.CorrelationID}
	if len(b.Deltas) == 0 && (b.Asked == nil || b.Asked.HoldID == "") {
		return plan, nil // without a delta, only what a release names may be gone
	}
	if state.Revision == 0 {
		return plan, nil // before its first effect a scope has nothing to read
	}
	if ids := memory.NeededFacts(b); len(ids) > 0 {
		found, err := s.deps.Facts.FactsByID(ctx, b.Scope, ids)
		if err != nil {
			return plan, fmt.Errorf("read facts: %w", err)
		}
		for _, f := range found {
			plan.Facts = append(plan.Facts, f.Fact)
			if b.Upkeep != nil && !f.DueBy(b.Upkeep.At) {
				if plan.Spared == nil {
					plan.Spared = map[string]bool{}
				}
				plan.Spared[f.ID] = true
			}
		}
	}
	if err := s.loadEarlier(ctx, &plan); err != nil {
		return plan, err
	}
	if names := memory.NeededNames(b, plan.Facts); len(names) > 0 {
		entities, err := s.deps.Facts.Entities(ctx, b.Scope, names)
		if err != nil {
			return plan, fmt.Errorf("read entities: %w", err)
		}
		plan.Entities = entities
	}
	if ids := unloaded(memory.NeededEntities(b, plan.Facts), plan.Entities); len(ids) > 0 {
		entities, err := s.deps.Facts.EntitiesByID(ctx, b.Scope, ids)
		if err != nil {
			return plan, fmt.Errorf("read entities: %w", err)
		}
		plan.Entities = append(plan.Entities, entities...)
	}
	if state.NoHolds {
		return plan, nil
	}
	holds, err := s.deps.Facts.Holds(ctx, b.Scope)
	if err != nil {
		return plan, fmt.Errorf("read holds: %w", err)
	}
	plan.Held = holds
	return plan, nil
}

// unloaded are the ids that none of the entities has.
func unloaded(ids []string, known []events.Entity) []string {
	return slices.DeleteFunc(ids, func(id string) bool {
		return slices.ContainsFunc(known, func(e events.Entity) bool { return e.ID == id })
	})
}

// known returns the outcome of a command that was committed before, empty where
// it was not. Commands move no watermark; their deltas' ids tell them.
func (s *Service) known(ctx context.Context, in events.Event[events.DeltasDecided]) ([]events.Payload, error) {
	return s.recall(ctx, in, in.CorrelationID, func(o events.Outcome) bool {
		if o.Rule != memory.RuleCommand || in.Data.Skipped != "" {
			return o.Rule == memory.RuleCommand // it may have been committed before it was buried
		}
		ids := make([]string, 0, len(in.Data.Deltas))
		for _, d := range in.Data.Deltas {
			ids = append(ids, d.Provenance().ID)
		}
		return len(ids) == 0 && len(o.Results) == 0 ||
			slices.ContainsFunc(o.Results, func(r events.Result) bool { return slices.Contains(ids, r.DeltaID) })
	})
}

// settled answers a batch whose range is committed. One that comes again may
// have been stopped before its outcomes were announced.
func (s *Service) settled(ctx context.Context, in events.Event[events.DeltasDecided], rolled []events.Payload) ([]events.Payload, error) {
	if in.Delivery <= 1 || len(rolled) > 0 {
		return rolled, nil
	}
	var out []events.Payload
	seen := map[string]bool{"": true}
	for _, e := range in.Data.Episodes {
		if seen[e.CorrelationID] {
			continue
		}
		seen[e.CorrelationID] = true
		again, err := s.recall(ctx, in, e.CorrelationID, func(o events.Outcome) bool {
			return o.Rule == in.Data.Rule && slices.Contains(o.EpisodeIDs, e.ID)
		})
		if err != nil {
			return nil, err
		}
		out = append(out, again...)
	}
	return out, nil
}

func (s *Service) recall(
	ctx context.Context, in events.Event[events.DeltasDecided], correlationID string, match func(events.Outcome) bool,
) ([]events.Payload, error) {
	if correlationID == "" && in.Data.Command != nil {
		correlationID = in.Data.Command.RequestID
	}
	outcomes, err := s.deps.Outcomes.Outcomes(ctx, in.Data.Scope.Project, correlationID)
	if err != nil {
		return nil, fmt.Errorf("read outcomes: %w", err)
	}
	var out []events.Payload
	for _, o := range outcomes {
		if match(o) {
			out = append(out, events.OutcomeAnnounced{Header: in.Data.Header, Outcome: o})
		}
	}
	return out, nil
}
