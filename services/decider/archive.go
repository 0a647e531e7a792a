package decider

import (
	"cmp"
	"context"
	"slices"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// maxProcedural bounds the instructions of a fact scope that are in force: all of them
// go into the prompt.
const maxProcedural = 20

// archive returns deltas that archive the oldest instructions of a scope where the
// deltas of a batch bring more than are kept. A restore brings one back.
func (s *Service) archive(
	ctx context.Context, in events.Event[events.CandidatesExtracted], state memory.State, decided events.Deltas, decidedBy string,
) (events.Deltas, error) {
	var added []events.Fact
	gone := map[string]bool{}
	for _, d := range decided {
		switch d := d.(type) {
		case events.Add:
			if f := d.Payload().Fact; f != nil && f.Kind == events.FactProcedural {
				added = append(added, *f)
			}
		case events.Update:
			for _, id := range d.Replaces() {
				gone[id] = true
			}
		case events.Delete:
			for _, id := range d.Replaces() {
				gone[id] = true
			}
		}
	}
	if len(added) == 0 || state.Revision == 0 && len(added) <= maxProcedural {
		return nil, nil
	}
	known, err := s.deps.Facts.Facts(ctx, scope.Exactly(in.Data.Scope), store.FactQuery{
		Kinds: []events.FactKind{events.FactProcedural}, Limit: 10 * maxProcedural,
	})
	if err != nil {
		return nil, err
	}
	var old []events.Fact
	for _, f := range known {
		if f.Kind == events.FactProcedural && f.ValidUntil == nil && f.ArchivedAt == nil && !gone[f.ID] {
			old = append(old, f.Fact)
		}
	}
	slices.SortFunc(old, func(a, b events.Fact) int {
		return cmp.Or(memory.StatedAt(a).Compare(memory.StatedAt(b)), cmp.Compare(a.ID, b.ID))
	})
	over := min(len(old)+len(added)-maxProcedural, len(old))
	var out events.Deltas
	for i := range max(over, 0) {
		f, at := old[i], in.Time
		f.ArchivedAt, f.UpdatedAt = &at, at
		update, err := events.NewUpdate(events.Provenance{
			ID: events.HashID(in.ID, "archive", f.ID), SourceEpisodeIDs: f.SourceEpisodeIDs, RequestID: in.ID, PromotionTS: at,
			RuleID: f.RuleID, Confidence: f.Confidence, Reason: events.ReasonArchived, DecidedBy: decidedBy,
		}, events.FactPayload{Fact: &f}, []string{f.ID})
		if err != nil {
			return nil, err
		}
		out = append(out, update)
	}
	return out, nil
}
