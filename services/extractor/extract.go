package extractor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"palimpsest/internal/extract"
	"palimpsest/internal/filter"
	"palimpsest/internal/llm"
	"palimpsest/internal/memory"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// extract answers one tick with one batch.
func (s *Service) extract(ctx context.Context, in events.Event[events.TickIssued]) ([]events.Payload, error) {
	tick := in.Data
	out := events.CandidatesExtracted{Batch: tick.Batch, SessionEnds: tick.SessionEnds}
	if tick.Skipped != "" {
		return []events.Payload{out}, nil
	}
	rule, ok := s.rules[tick.By()]
	if !ok {
		return nil, pipeline.Rejectf(events.CodeInvalidField, "rule", "no rule is called %q", tick.By())
	}
	if tick.Upkeep != nil {
		return s.upkeep(ctx, in, rule)
	}
	episodes, err := s.deps.Episodes.EpisodeRange(ctx, tick.Scope, tick.Range)
	if err != nil {
		return nil, fmt.Errorf("read episodes (%d, %d]: %w", tick.Range.From, tick.Range.To, err)
	}
	out.Episodes, out.Extractor = refs(episodes), rule.extractor.Name()
	if n := len(episodes); n > 0 {
		out.Traceparent = episodes[n-1].Traceparent
	}
	pipeline.Link(ctx, traces(episodes)...)
	turns, err := s.before(ctx, episodes)
	if err != nil {
		return nil, err
	}
	ctx, bill := llm.Billed(ctx)
	payloads := []events.Payload{nil}
	for _, part := range cut(episodes, func(e memory.Episode) bool { return s.reads(rule.Rule, e) }) {
		about := extract.Context{
			Scope: tick.Scope, Rule: tick.By(), Prompt: cmp.Or(tick.Prompt, rule.Prompt), Before: turnsBefore(turns, episodes[:part.at], part.episodes),
			Known: func(ctx context.Context) ([]events.Fact, error) { return s.known(ctx, tick.Scope, part.episodes) },
		}
		found, err := rule.extractor.Extract(ctx, part.episodes, about)
		if unusable := (*extract.UnusableError)(nil); errors.As(err, &unusable) {
			letters, lost := unread(in, unusable)
			if lost != nil {
				return nil, lost
			}
			payloads = append(payloads, letters...)
			found, err = s.fallback(ctx, part.episodes, about)
		}
		if after, paused := llm.Paused(err); paused {
			return nil, pipeline.Later(after, err)
		}
		if err != nil {
			return nil, fmt.Errorf("extract with %s: %w", rule.extractor.Name(), err)
		}
		out.Candidates = append(out.Candidates, found...)
	}
	told, err := s.summaries(ctx, rule, tick, episodes)
	if err != nil {
		return nil, err
	}
	out.Candidates = append(out.Candidates, told...)
	out.Spent = events.Charge(out.Spent, bill.Spent())
	payloads[0] = out
	return payloads, nil
}

// fallback extracts what the rule's extractor never will.
func (s *Service) fallback(ctx context.Context, episodes []memory.Episode, in extract.Context) ([]events.Candidate, error) {
	if s.deps.Fallback == nil {
		return nil, nil
	}
	return s.deps.Fallback.Extract(ctx, episodes, in)
}

// maxKnown bounds the facts that are read of a session.
const maxKnown = 1000

// known reads the facts that hold and rest on one of the episodes.
func (s *Service) known(ctx context.Context, fact scope.Scope, episodes []memory.Episode) ([]events.Fact, error) {
	if s.deps.Facts == nil {
		return nil, nil
	}
	var out []events.Fact
	asked := make(map[string]bool)
	for _, e := range episodes {
		if asked[e.Scope.Session] {
			continue
		}
		asked[e.Scope.Session] = true
		q := store.FactQuery{Limit: maxKnown}
		if e.Scope.Session != "" {
			q.Session = &e.Scope.Session
		}
		found, err := s.deps.Facts.Facts(ctx, scope.Exactly(fact), q)
		if err != nil {
			return nil, fmt.Errorf("read facts of session %q: %w", e.Scope.Session, err)
		}
		for _, f := range found {
			if f.ValidUntil == nil && !slices.ContainsFunc(out, func(g events.Fact) bool { return g.ID == f.ID }) {
				out = append(out, f.Fact)
			}
		}
	}
	return out, nil
}

// reads reports whether a rule takes an episode: never an incognito one. Those that it
// does not take are still context for the episodes after them.
func (s *Service) reads(rule memory.Rule, e memory.Episode) bool {
	if e.Request && s.answering != "" && rule.Reads() && rule.ID != s.answering {
		return false // read by the rule of requests, in its turn
	}
	return e.Mode != events.ModeIncognito && (rule.When == nil || filter.Match(rule.When, store.EpisodeRow(&e)))
}

// before reads the turns in front of the range, for each session in it.
func (s *Service) before(ctx context.Context, episodes []memory.Episode) ([]memory.Episode, error) {
	var out []memory.Episode
	seen := make(map[scope.Scope]bool)
	for _, e := range episodes {
		if seen[e.Scope] {
			continue
		}
		seen[e.Scope] = true
		turns, err := s.deps.Episodes.EpisodesBefore(ctx, e.Scope, e.Ordinal, extract.ContextTurns)
		if err != nil {
			return nil, fmt.Errorf("read turns before %d: %w", e.Ordinal, err)
		}
		for _, t := range turns {
			if t.Mode != events.ModeIncognito {
				out = append(out, t)
			}
		}
	}
	return out, nil
}

// run is consecutive episodes that a rule reads; at is the index of the first.
type run struct {
	at       int
	episodes []memory.Episode
}

// cut splits a range at the episodes that the rule does not read.
func cut(episodes []memory.Episode, take func(memory.Episode) bool) []run {
	var out []run
	open := false
	for i, e := range episodes {
		switch {
		case !take(e):
			open = false
		case open:
			last := &out[len(out)-1]
			last.episodes = append(last.episodes, e)
		default:
			out = append(out, run{at: i, episodes: []memory.Episode{e}})
			open = true
		}
	}
	return out
}

// turnsBefore keeps, of the turns before the range and those of the range before a
// run, the last [extract.ContextTurns] of each session in the run.
func turnsBefore(before, earlier, part []memory.Episode) []memory.Episode {
	left := make(map[scope.Scope]int)
	for _, e := range part {
		left[e.Scope] = extract.ContextTurns
	}
	var reversed []memory.Episode
	for _, turns := range [...][]memory.Episode{earlier, before} {
		for i := len(turns) - 1; i >= 0; i-- {
			e := turns[i]
			if left[e.Scope] > 0 && e.Mode != events.ModeIncognito {
				left[e.Scope]--
				reversed = append(reversed, e)
			}
		}
	}
	out := make([]memory.Episode, 0, len(reversed))
	for i := len(reversed) - 1; i >= 0; i-- {
		out = append(out, reversed[i])
	}
	return out
}

func traces(episodes []memory.Episode) []string {
	out := make([]string, len(episodes))
	for i, e := range episodes {
		out[i] = e.Traceparent
	}
	return out
}

func refs(episodes []memory.Episode) []events.EpisodeRef {
	out := make([]events.EpisodeRef, 0, len(episodes))
	for _, e := range episodes {
		out = append(out, events.EpisodeRef{
			ID: e.ID, Ordinal: e.Ordinal, Session: e.Scope.Session, CorrelationID: e.CorrelationID, SourceNode: e.SourceNode,
		})
	}
	return out
}
