package extractor

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"palimpsest/internal/memory"
	"palimpsest/internal/pipeline"
	"palimpsest/pkg/events"
)

// upkeeper is how the candidates of maintenance name their extractor.
const upkeeper = "upkeep@1"

// The sizes of what a candidate tells of a fact: many go into one message.
const (
	gatheredText    = 200 // bytes
	gatheredSources = 16
)

// upkeep answers a maintenance tick with the work that is still due. It may answer with
// nothing, since no watermark waits for it.
func (s *Service) upkeep(ctx context.Context, in events.Event[events.TickIssued], rule ruled) ([]events.Payload, error) {
	switch step := in.Data.Upkeep.Step; {
	case step != events.StepPrune && step != events.StepEnrich:
		return nil, pipeline.Rejectf(events.CodeInvalidField, "upkeep.step", "no step is called %q", step)
	case s.deps.Facts == nil:
		return nil, nil
	case step == events.StepEnrich:
		return s.describe(ctx, in, rule)
	}
	return s.gather(ctx, in.Data)
}

// gather finds the facts that are still to be pruned.
func (s *Service) gather(ctx context.Context, tick events.TickIssued) ([]events.Payload, error) {
	found, err := s.deps.Facts.FactsByID(ctx, tick.Scope, tick.Upkeep.FactIDs)
	if err != nil {
		return nil, fmt.Errorf("read facts: %w", err)
	}
	out := events.CandidatesExtracted{Batch: tick.Batch}
	out.Extractor = upkeeper
	for _, f := range found {
		if !f.DueBy(tick.Upkeep.At) {
			continue
		}
		out.Candidates = append(out.Candidates, events.Candidate{
			ID: events.HashID(tick.Upkeep.Step, f.ID, strconv.FormatUint(f.Revision, 10)), Kind: f.Kind, Category: f.Category,
			Subject: clip(f.Subject), Predicate: f.Predicate, Object: clip(f.Object), Text: clip(f.Text), Cardinality: f.Cardinality,
			Confidence: memory.Confidence(f.Strength, f.DecayRate, f.LastAccessed, tick.Upkeep.At), Replaces: []string{f.ID},
			SourceEpisodeIDs: f.SourceEpisodeIDs[:min(len(f.SourceEpisodeIDs), gatheredSources)],
			EventTime:        tick.Upkeep.At, Extractor: upkeeper, RuleID: tick.Rule + "." + tick.Upkeep.Step,
		})
	}
	if len(out.Candidates) == 0 {
		return nil, nil
	}
	slices.SortFunc(out.Candidates, func(a, b events.Candidate) int { return strings.Compare(a.Replaces[0], b.Replaces[0]) })
	return []events.Payload{out}, nil
}

func clip(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), gatheredText)], "")
}
