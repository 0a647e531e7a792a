package audit

import (
	"slices"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// Records takes an effect apart: one record for each delta as it was applied to
// a fact, in order. It is a function of the event.
func Records(e events.Event[events.EffectCommitted]) []Record {
	effect := e.Data
	versions := make(map[string]*events.Fact, len(effect.Facts)+len(effect.Versions))
	for _, list := range [][]events.Fact{effect.Versions, effect.Facts} {
		for i := range list {
			versions[memory.AddressOf(list[i]).String()] = &list[i]
		}
	}
	correlations := correlationOf(effect)
	out := make([]Record, len(effect.Applied))
	for i, a := range effect.Applied {
		prov := a.Delta.Provenance()
		r := Record{
			Scope:         effect.Scope,
			Revision:      effect.Revision,
			Index:         i,
			Sequence:      e.Sequence,
			DeltaID:       prov.ID,
			Kind:          a.Delta.Kind(),
			Reason:        prov.Reason,
			Rule:          effect.Rule,
			RuleID:        prov.RuleID,
			DecidedBy:     prov.DecidedBy,
			Extractor:     effect.Extractor,
			Confidence:    prov.Confidence,
			FactID:        a.FactID,
			Before:        versions[a.Before],
			After:         versions[a.After],
			Sources:       prov.SourceEpisodeIDs,
			RequestID:     prov.RequestID,
			CandidateID:   prov.CandidateID,
			CorrelationID: correlations(prov.SourceEpisodeIDs, e.CorrelationID),
			DecidedAt:     prov.PromotionTS,
			AppliedAt:     effect.CommittedAt,
		}
		switch {
		case r.After != nil:
			r.EventTime = r.After.EventTime
		case r.Before != nil:
			r.EventTime = r.Before.EventTime
		}
		out[i] = r
	}
	return out
}

// correlationOf finds whose outcome the sources of a delta belong to: that of
// its last source in the range.
func correlationOf(effect events.EffectCommitted) func(sources []string, otherwise string) string {
	byEpisode := map[string]string{}
	for _, o := range effect.Outcomes {
		for _, id := range o.EpisodeIDs {
			byEpisode[id] = o.CorrelationID
		}
	}
	return func(sources []string, otherwise string) string {
		for _, id := range slices.Backward(sources) {
			if correlation, ok := byEpisode[id]; ok {
				return correlation
			}
		}
		return otherwise
	}
}
