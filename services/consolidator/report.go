package consolidator

import (
	"slices"

	"palimpsest/pkg/events"
)

// report passes a committed effect to the observer, and logs the first held
// candidate of each fact that changes too often. Later ones are only counted until
// it is released.
func (s *Service) report(e events.EffectCommitted) {
	s.deps.Observe(e)
	for _, h := range e.Holds {
		if h.Why != string(events.ReasonChurn) || !h.Since.Equal(h.HeldAt) {
			continue
		}
		s.deps.Logger.Warn("a fact changes too often: new statements about it are held",
			"project", e.Scope.Project, "fact", h.FactID, "hold", h.ID, "held", h.Count, "due", h.Due)
	}
}

// gone reports whether a batch is the release of a candidate that another release
// has taken.
func gone(b events.DeltasDecided, held []events.Hold) bool {
	if b.Asked == nil || b.Asked.HoldID == "" {
		return false
	}
	return !slices.ContainsFunc(held, func(h events.Hold) bool { return h.ID == b.Asked.HoldID })
}
