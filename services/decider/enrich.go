package decider

import (
	"context"
	"fmt"
	"slices"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
)

// enrich decides to give entities the summaries of a maintenance batch. A summary is
// left out where its entity has one by now, and where a fact that it rests on says
// something else: the next run makes another. The decision rests on those facts.
func (s *Service) enrich(ctx context.Context, in events.Event[events.CandidatesExtracted], out *events.DeltasDecided) error {
	entities, err := s.deps.Facts.EntitiesByID(ctx, in.Data.Scope, in.Data.Upkeep.FactIDs)
	if err != nil {
		return fmt.Errorf("read entities: %w", err)
	}
	out.Candidates = nil
	out.Footprint.Facts = map[string]uint64{}
	for _, c := range in.Data.Candidates {
		at := slices.IndexFunc(entities, func(e events.Entity) bool { return e.ID == c.Object })
		if at < 0 {
			continue
		}
		if _, due := memory.DescribeAt(entities[at]); !due {
			continue
		}
		rests, holds, err := s.restsOn(ctx, in, c)
		if err != nil {
			return err
		}
		if !holds {
			continue
		}
		described := entities[at]
		described.Summary = c.Text
		if len(c.Entities) > 0 {
			described.Type = c.Entities[0].Type
		}
		d, err := events.NewUpdate(provenance(in, c, events.ReasonRefinement, events.StepEnrich, c.Extractor),
			events.FactPayload{Entity: &described}, []string{described.ID})
		if err != nil {
			return err
		}
		for id, revision := range rests {
			out.Footprint.Facts[id] = revision
		}
		out.Candidates, out.Deltas = append(out.Candidates, c), append(out.Deltas, d)
	}
	return nil
}

// restsOn returns the revisions of the facts that a summary rests on, and whether they
// still are what it was made of.
func (s *Service) restsOn(ctx context.Context, in events.Event[events.CandidatesExtracted], c events.Candidate) (map[string]uint64, bool, error) {
	rests := map[string]uint64{}
	var ids []string
	for _, text := range c.Replaces {
		a, err := memory.ParseAddress(text)
		if err != nil {
			return nil, false, fmt.Errorf("read the candidate: %w", err)
		}
		rests[a.ID], ids = a.Revision, append(ids, a.ID)
	}
	if len(ids) == 0 {
		return rests, true, nil
	}
	found, err := s.deps.Facts.FactsByID(ctx, in.Data.Scope, ids)
	if err != nil {
		return nil, false, fmt.Errorf("read facts: %w", err)
	}
	same := func(f store.Fact) bool {
		return f.Revision == rests[f.ID] && f.ValidUntil == nil && f.ArchivedAt == nil
	}
	return rests, len(found) == len(rests) && !slices.ContainsFunc(found, func(f store.Fact) bool { return !same(f) }), nil
}
