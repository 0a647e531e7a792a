package memory

import "palimpsest/pkg/events"

// resume omits the deltas that earlier effects of the same command applied: a
// command too large for one effect may have been stopped between two. Its facts
// count as unchanged if no other command changed them. Its outcome covers all.
func (p *planner) resume(deltas events.Deltas) (events.Deltas, error) {
	if len(p.in.Done) == 0 {
		return deltas, nil
	}
	type change struct{ delta, fact string }
	facts, whole := map[change]bool{}, map[string]bool{}
	for _, e := range p.in.Done {
		for _, f := range e.Facts {
			p.own[f.ID] = f.Revision
		}
		for _, a := range e.Applied {
			id := a.Delta.Provenance().ID
			facts[change{id, a.FactID}], whole[id] = true, true
			p.settled = append(p.settled, settledDelta{delta: a.Delta, result: resultOf(a, e)})
		}
	}
	var out events.Deltas
	for _, d := range deltas {
		del, ok := d.(events.Delete)
		if !ok {
			if !whole[d.Provenance().ID] {
				out = append(out, d)
			}
			continue
		}
		var rest []string
		for _, id := range del.Replaces() {
			if !facts[change{del.Provenance().ID, id}] {
				rest = append(rest, id)
			}
		}
		if len(rest) == 0 {
			continue
		}
		part, err := events.NewDelete(del.Provenance(), rest)
		if err != nil {
			return nil, err
		}
		out = append(out, part)
	}
	return out, nil
}

// resultOf reads what was applied back from its effect.
func resultOf(a events.Applied, e events.EffectCommitted) events.Result {
	r := events.Result{FactID: a.FactID, DeltaID: a.Delta.Provenance().ID, Reason: a.Delta.Provenance().Reason}
	for _, list := range [][]events.Fact{e.Versions, e.Facts} {
		for _, f := range list {
			switch AddressOf(f).String() {
			case a.Before:
				r.OldMemory = f.Text
			case a.After:
				r.Memory, r.Revision = f.Text, f.Revision
			}
		}
	}
	switch a.Delta.Kind() {
	case events.DeltaAdd:
		r.Event = events.ChangeAdd
	case events.DeltaUpdate:
		r.Event = events.ChangeUpdate
	case events.DeltaDelete:
		r.Event, r.Memory = events.ChangeDelete, ""
	case events.DeltaNoop:
		r.Event = events.ChangeNone
	}
	return r
}
