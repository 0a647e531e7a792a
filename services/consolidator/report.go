package consolidator

import (
	"slices"

	"palimpsest/pkg/events"
)

// report tells operators of an effect that was committed: all of it to whoever
// observes, and in the log the first candidate on each fact that changes too
// often. What follows it until it is released is only counted.
func (s *Service) report(e events.EffectCommitted) {
	s.deps.Observe(e)
	for _, h := range e.Holds {
		if h.Why != string(events.ReasonChurn) || !h.Since.Equal(h.HeldAt) {
			continue
		}
		s.deps.Logger.Warn("a fact changes too often: what is said of it is held",
			"project", e.Scope.Project, "fact", h.FactID, "hold", h.ID, "held", h.Count, "due", h.Due)
	}
}

// gone reports whether a batch is that of a release, of a candidate that is not
// held any more: somebody else was faster.
func gone(b events.DeltasDecided, held []events.Hold) bool {
	if b.Asked == nil || b.Asked.HoldID == "" {
		return false
	}
	return !slices.ContainsFunc(held, func(h events.Hold) bool { return h.ID == b.Asked.HoldID })
}
