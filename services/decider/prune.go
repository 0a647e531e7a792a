package decider

import (
	"context"
	"fmt"
	"slices"

	"palimpsest/internal/store"
	"palimpsest/pkg/events"
)

// upkeep is how the deltas of maintenance name their decider.
const upkeep = "upkeep@1"

// prune decides to close the facts of a maintenance batch that are still due. The
// decision rests on their revisions.
func (s *Service) prune(ctx context.Context, in events.Event[events.CandidatesExtracted], out *events.DeltasDecided) error {
	found, err := s.deps.Facts.FactsByID(ctx, in.Data.Scope, in.Data.Upkeep.FactIDs)
	if err != nil {
		return fmt.Errorf("read facts: %w", err)
	}
	out.Candidates = nil
	out.Footprint.Facts = map[string]uint64{}
	for _, c := range in.Data.Candidates {
		at := slices.IndexFunc(found, func(f store.Fact) bool { return slices.Contains(c.Replaces, f.ID) })
		if at < 0 || !found[at].DueBy(in.Data.Upkeep.At) {
			continue
		}
		d, err := events.NewDelete(provenance(in, c, events.ReasonBelowThreshold, events.StepPrune, upkeep), []string{found[at].ID})
		if err != nil {
			return err
		}
		out.Footprint.Facts[found[at].ID] = found[at].Revision
		out.Candidates, out.Deltas = append(out.Candidates, c), append(out.Deltas, d)
	}
	return nil
}
