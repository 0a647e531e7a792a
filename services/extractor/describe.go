package extractor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"palimpsest/internal/extract"
	"palimpsest/internal/filter"
	"palimpsest/internal/llm"
	"palimpsest/internal/memory"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// maxPortrayed bounds the facts that one summary rests on, the newest.
const maxPortrayed = 20

// describe proposes summaries of the entities of a tick that still lack one: those of
// the rule's extractor where that describes entities, else outlines.
func (s *Service) describe(ctx context.Context, in events.Event[events.TickIssued], rule ruled) ([]events.Payload, error) {
	tick := in.Data
	portraits, err := s.portraits(ctx, tick)
	if err != nil || len(portraits) == 0 {
		return nil, err
	}
	out := events.CandidatesExtracted{Batch: tick.Batch}
	out.Extractor = upkeeper
	payloads := []events.Payload{nil}
	descriptions := make([]extract.Description, len(portraits))
	ctx, bill := llm.Billed(ctx)
	if d, ok := rule.extractor.(extract.Describer); ok {
		described, err := d.Describe(ctx, tick.Scope, portraits)
		unusable := (*extract.UnusableError)(nil)
		after, paused := llm.Paused(err)
		switch {
		case errors.As(err, &unusable):
			letters, lost := unread(in, unusable)
			if lost != nil {
				return nil, lost
			}
			payloads = append(payloads, letters...)
		case paused:
			return nil, pipeline.Later(after, err)
		case err != nil:
			return nil, fmt.Errorf("describe with %s: %w", rule.extractor.Name(), err)
		default:
			descriptions, out.Extractor = described, rule.extractor.Name()
		}
	}
	for i, p := range portraits {
		extractor := out.Extractor
		if descriptions[i].Summary == "" {
			descriptions[i], extractor = extract.Outline(p), upkeeper
		}
		out.Candidates = append(out.Candidates, summaryOf(p, descriptions[i], tick, extractor))
	}
	out.Spent = events.Charge(out.Spent, bill.Spent())
	payloads[0] = out
	return payloads, nil
}

// portraits reads the entities of a tick that lack a summary, and their facts. Nothing
// sensitive becomes part of a summary.
func (s *Service) portraits(ctx context.Context, tick events.TickIssued) ([]extract.Portrait, error) {
	found, err := s.deps.Facts.EntitiesByID(ctx, tick.Scope, tick.Upkeep.FactIDs)
	if err != nil {
		return nil, fmt.Errorf("read entities: %w", err)
	}
	slices.SortFunc(found, func(a, b events.Entity) int { return cmp.Compare(a.ID, b.ID) })
	var out []extract.Portrait
	for _, e := range found {
		if _, due := memory.DescribeAt(e); !due {
			continue
		}
		facts, err := s.deps.Facts.Facts(ctx, scope.Exactly(tick.Scope), store.FactQuery{
			Limit: maxPortrayed, ValidAt: tick.Upkeep.At,
			Filter: &store.Filter{Expr: filter.OneOf(filter.Memory, "entity_ids", e.ID), Now: tick.Upkeep.At},
		})
		if err != nil {
			return nil, fmt.Errorf("read facts of entity %s: %w", e.ID, err)
		}
		p := extract.Portrait{Entity: e}
		for _, f := range facts {
			if f.Sensitivity != events.SensitivitySensitive && f.Kind != events.FactSummary {
				p.Facts = append(p.Facts, f.Fact)
			}
		}
		out = append(out, p)
	}
	return out, nil
}

// summaryOf is a candidate that names the entity in its object, and in Replaces the
// versions of the facts that the summary rests on.
func summaryOf(p extract.Portrait, d extract.Description, tick events.TickIssued, extractor string) events.Candidate {
	c := events.Candidate{
		ID:   events.HashID(tick.Upkeep.Step, p.Entity.ID, strconv.FormatUint(p.Entity.MentionCount, 10), d.Summary),
		Kind: events.FactSummary, Category: "summary", Subject: p.Entity.CanonicalName, Predicate: "summary", Object: p.Entity.ID, Text: d.Summary,
		Confidence: 1, Sensitivity: events.SensitivityNone, Cardinality: events.One, EventTime: tick.Upkeep.At,
		Extractor: extractor, RuleID: tick.Rule + "." + tick.Upkeep.Step,
	}
	if d.Type != "" {
		c.Entities = []events.Mention{{Name: p.Entity.CanonicalName, Type: d.Type}}
	}
	for _, f := range p.Facts {
		c.Replaces = append(c.Replaces, memory.AddressOf(f).String())
		for _, id := range f.SourceEpisodeIDs {
			if len(c.SourceEpisodeIDs) < gatheredSources && !slices.Contains(c.SourceEpisodeIDs, id) {
				c.SourceEpisodeIDs = append(c.SourceEpisodeIDs, id)
			}
		}
	}
	return c
}
