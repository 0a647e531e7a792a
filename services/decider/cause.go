package decider

import (
	"palimpsest/internal/extract"
	"palimpsest/pkg/events"
)

// causes takes the candidates that relate two episodes out of a batch, and returns the
// edges that they add. Such an edge stands for no fact: the same pair makes the same
// edge again.
func causes(in events.Event[events.CandidatesExtracted], passed []events.Candidate) (deltas events.Deltas, rest []events.Candidate, err error) {
	for _, c := range passed {
		if c.Kind != events.FactRelation || c.Category != extract.CategoryCausal {
			rest = append(rest, c)
			continue
		}
		d, err := events.NewAdd(provenance(in, c, events.ReasonNew, "cause", c.Extractor), events.FactPayload{Edge: &events.Edge{
			SourceID: c.Subject, TargetID: c.Object, Type: events.EdgeCausal, Predicate: c.Predicate, Weight: 1, Confidence: c.Confidence,
			Evidence: c.SourceEpisodeIDs, ValidFrom: c.EventTime, CreatedAt: in.Time,
		}})
		if err != nil {
			return nil, nil, err
		}
		deltas = append(deltas, d)
	}
	return deltas, rest, nil
}
