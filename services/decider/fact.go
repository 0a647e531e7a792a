package decider

import (
	"context"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// onFact runs do on the fact that the command names; one that is unknown is a
// conflict.
func (o *order) onFact(ctx context.Context, do func(context.Context, events.Fact) error) error {
	found, err := o.look.ByID(ctx, []string{o.in.Data.FactID})
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return o.noop(events.ReasonChangedSince, o.in.Data.FactID)
	}
	return do(ctx, found[0])
}

// confirm makes a fact certain: it no longer decays.
func (o *order) confirm(_ context.Context, f events.Fact) error {
	switch {
	case o.closed(f):
		return o.noop(events.ReasonChangedSince, f.ID)
	case f.Confirmed:
		return o.noop(events.ReasonConfirmed, f.ID)
	}
	f.Confirmed, f.Confidence, f.DecayRate = true, 1, 0
	return o.update(events.ReasonConfirmed, f, f.ID)
}

// remove closes a fact.
func (o *order) remove(_ context.Context, f events.Fact) error {
	if o.closed(f) {
		return o.noop(events.ReasonChangedSince, f.ID)
	}
	if err := o.delete(f.ID); err != nil {
		return err
	}
	return o.dropHeld(func(h events.Hold) bool { return h.FactID == f.ID })
}

// restore reopens a closed or archived fact as it was. Where one value holds at a
// time, it closes the facts that replaced it since. The fact counts as stated at the
// time of the restore, so that the statement that ended it does not end it again. An
// end of its own counts where it is still ahead.
func (o *order) restore(ctx context.Context, f events.Fact) error {
	if f.ValidUntil == nil && f.ArchivedAt == nil {
		return o.noop(events.ReasonRestored, f.ID)
	}
	o.restOnScope()
	replaces, err := o.rivals(ctx, f)
	if err != nil {
		return err
	}
	return o.update(events.ReasonRestored, memory.Restored(f, o.at), append([]string{f.ID}, replaces...)...)
}

// rivals lists the facts that cannot hold beside f.
func (o *order) rivals(ctx context.Context, f events.Fact) ([]string, error) {
	if f.Cardinality != events.One || f.Subject == "" || f.Predicate == "" {
		return nil, nil
	}
	versions, err := o.look.ByPredicate(ctx, f.Subject, f.Predicate)
	if err != nil {
		return nil, err
	}
	newest := map[string]events.Fact{}
	var ids []string
	for _, v := range versions {
		if v.Revision > newest[v.ID].Revision {
			newest[v.ID] = v
		}
	}
	for _, v := range versions {
		open := newest[v.ID].Revision == v.Revision && v.ValidUntil == nil && v.ArchivedAt == nil
		if open && v.ID != f.ID && v.Kind == f.Kind {
			ids = append(ids, v.ID)
		}
	}
	return ids, nil
}

// closed reports whether a fact has ended by the time of the command.
func (o *order) closed(f events.Fact) bool { return f.ValidUntil != nil && !f.ValidUntil.After(o.at) }
