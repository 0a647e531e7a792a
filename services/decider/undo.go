package decider

import (
	"context"
	"slices"

	"palimpsest/pkg/events"
)

// undo takes facts and held candidates back to their state when the steps were
// made. If one of the facts has changed since, it changes nothing.
func (o *order) undo(ctx context.Context) error {
	known, err := o.undone(ctx)
	if err != nil {
		return err
	}
	for _, step := range o.in.Data.Undo {
		if step.FactID != "" && known[step.FactID].Revision != step.Revision {
			return o.noop(events.ReasonChangedSince, step.FactID)
		}
	}
	rival, err := o.rival(ctx)
	if err != nil {
		return err
	}
	if rival != "" {
		return o.noop(events.ReasonChangedSince, rival)
	}
	for _, step := range o.in.Data.Undo {
		if err := o.takeBack(step, known[step.FactID]); err != nil {
			return err
		}
	}
	return nil
}

// rival is a fact that came to hold since the steps were made, where one of them brings
// another value back and only one may hold; empty where there is none.
func (o *order) rival(ctx context.Context) (string, error) {
	ends := map[string]bool{}
	for _, step := range o.in.Data.Undo {
		ends[step.FactID] = step.Restore == nil || step.Restore.ValidUntil != nil
		for _, id := range step.Replaces {
			ends[id] = true
		}
	}
	for _, step := range o.in.Data.Undo {
		if !step.RestoresOnly() {
			continue
		}
		o.restOnScope()
		f := step.Restore
		versions, err := o.look.ByPredicate(ctx, f.Subject, f.Predicate)
		if err != nil {
			return "", err
		}
		for _, r := range versions {
			if r.ID != f.ID && r.Kind == f.Kind && r.ValidUntil == nil && r.ArchivedAt == nil && !ends[r.ID] {
				return r.ID, nil
			}
		}
	}
	return "", nil
}

// undone reads the facts of the steps.
func (o *order) undone(ctx context.Context) (map[string]events.Fact, error) {
	var ids []string
	for _, step := range o.in.Data.Undo {
		if step.FactID != "" {
			ids = append(ids, step.FactID)
		}
	}
	known := map[string]events.Fact{}
	if len(ids) == 0 {
		return known, nil
	}
	found, err := o.look.ByID(ctx, ids)
	for _, f := range found {
		known[f.ID] = f
	}
	return known, err
}

func (o *order) takeBack(step events.UndoStep, f events.Fact) error {
	switch {
	case step.Hold != nil:
		p := o.provenance(events.ReasonUndone)
		p.CandidateID = step.Hold.ID
		return o.put(events.NewAdd(p, events.FactPayload{Hold: step.Hold}))
	case step.HoldID != "":
		at := slices.IndexFunc(o.held, func(h events.Hold) bool { return h.ID == step.HoldID })
		if at < 0 {
			return nil // it was released or dismissed meanwhile
		}
		return o.drop(o.held[at], events.ReasonUndone)
	case step.Restore == nil:
		o.expect(f.ID, f.Revision)
		return o.put(events.NewDelete(o.provenance(events.ReasonUndone), []string{f.ID}))
	}
	back := *step.Restore
	back.Revision = f.Revision
	if !o.closed(back) {
		back.RestoredAt = &o.at
	}
	return o.update(events.ReasonUndone, back, append([]string{f.ID}, step.Replaces...)...)
}
