package extractor

import (
	"context"
	"fmt"
	"slices"

	"palimpsest/internal/extract"
	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// maxSummarised bounds how much of a session a summary looks at, in episodes.
const maxSummarised = 400

// summaries returns a summary of each session that ends with the tick.
func (s *Service) summaries(ctx context.Context, rule ruled, tick events.TickIssued, episodes []memory.Episode) ([]events.Candidate, error) {
	if !s.cfg.Summaries || s.deps.Fallback == nil || rule.CommitOnly || !rule.Emits(events.FactSummary) {
		return nil, nil
	}
	var out []events.Candidate
	for _, end := range tick.SessionEnds {
		at := slices.IndexFunc(episodes, func(e memory.Episode) bool { return e.Scope.Session == end.Session })
		if at < 0 {
			continue
		}
		said, err := s.deps.Episodes.EpisodesBefore(ctx, episodes[at].Scope, end.LastOrdinal+1, maxSummarised)
		if err != nil {
			return nil, fmt.Errorf("read session %q: %w", end.Session, err)
		}
		said = slices.DeleteFunc(said, func(e memory.Episode) bool { return !s.reads(rule.Rule, e) || !extract.Plain(e) })
		found, err := s.deps.Fallback.Extract(ctx, said, extract.Context{Scope: tick.Scope, Rule: tick.Rule})
		if err != nil {
			return nil, fmt.Errorf("summarise session %q: %w", end.Session, err)
		}
		c, ok := extract.Summary(said, found, tick.Rule)
		if ok {
			c.Extractor = s.deps.Fallback.Name()
			out = append(out, c)
		}
	}
	return out, nil
}
