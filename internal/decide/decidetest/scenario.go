package decidetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"palimpsest/internal/decide"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// start is when the scenarios begin.
var start = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// owner is the fact scope of the scenarios.
var owner = scope.Scope{Project: "default", User: "bo"}

// day is the n-th day of a scenario.
func day(n int) time.Time { return start.AddDate(0, 0, n) }

// said returns a candidate as an extractor proposes it from one episode on the
// n-th day: explicit, semantic, of cardinality many.
func said(n int, episode, subject, predicate, object, text string, more ...func(*events.Candidate)) events.Candidate {
	c := events.Candidate{
		ID: "c-" + episode + "-" + predicate + "-" + object, Kind: events.FactSemantic, Category: "identity",
		Subject: subject, Predicate: predicate, Object: object, Text: text, EvidenceQuote: text,
		Confidence: 0.9, Explicit: true, Sensitivity: events.SensitivityNone, Cardinality: events.Many,
		SourceEpisodeIDs: []string{episode}, Ordinal: uint64(n + 1), SessionIDs: []string{"s1"},
		SourceRole: events.RoleUser, EventTime: day(n), Extractor: "test@1", RuleID: "test." + predicate,
	}
	for _, m := range more {
		m(&c)
	}
	return c
}

func one(c *events.Candidate)     { c.Cardinality = events.One }
func negated(c *events.Candidate) { c.Negated = true }

func since(t time.Time) func(*events.Candidate) {
	return func(c *events.Candidate) { c.ValidFrom = &t }
}

func retracts(triples ...events.Triple) func(*events.Candidate) {
	return func(c *events.Candidate) { c.Retracts = triples }
}

// moved is a candidate that puts a value in the place of another, and names no
// attribute.
func moved(n int, episode, old, value string) events.Candidate {
	return said(n, episode, "user", "", value, "The user changed from "+old+" to "+value+".",
		retracts(events.Triple{Subject: "user", Object: old}), func(c *events.Candidate) { c.Moves = true })
}

func intent(what string, replaces ...string) func(*events.Candidate) {
	return func(c *events.Candidate) { c.Intent, c.Replaces = what, replaces }
}

// scene is a memory with the decider under test.
type scene struct {
	*Memory
	t       *testing.T
	decider decide.Decider
	lookup  decide.Lookup
	breaker decide.Breaker
	batches int
}

func newScene(t *testing.T, d decide.Decider) *scene {
	t.Helper()
	m := NewMemory(owner)
	return &scene{Memory: m, t: t, decider: d, lookup: m}
}

// try decides on candidates without applying the decision.
func (s *scene) try(candidates ...events.Candidate) (decide.Decision, error) {
	s.batches++
	known := decide.Known{Scope: owner, At: day(100 + s.batches), Cause: "m" + day(s.batches).String(), Lookup: s.lookup, Breaker: s.breaker, Held: s.Held()}
	return s.decider.Decide(context.Background(), candidates, known)
}

// hear decides on candidates as one batch and applies the decision.
func (s *scene) hear(candidates ...events.Candidate) events.Deltas {
	s.t.Helper()
	d, err := s.try(candidates...)
	if err != nil {
		s.t.Fatalf("Decide: %v", err)
	}
	s.commit(d, candidates)
	return d.Deltas
}

func (s *scene) commit(d decide.Decision, candidates []events.Candidate) {
	s.t.Helper()
	if err := s.Apply(d, candidates, day(100+s.batches)); err != nil {
		s.t.Fatalf("Apply: %v", err)
	}
}

// want checks kinds and reasons ("add new") of deltas.
func want(t *testing.T, got events.Deltas, kinds ...string) {
	t.Helper()
	var have []string
	for _, d := range got {
		have = append(have, string(d.Kind())+" "+string(d.Provenance().Reason))
	}
	if !slices.Equal(have, kinds) {
		t.Fatalf("deltas %q, want %q", have, kinds)
	}
}

// knows checks the texts of the facts that are valid after the n-th day.
func (s *scene) knows(n int, texts ...string) {
	s.t.Helper()
	var have []string
	for _, f := range s.ValidAt(day(n)) {
		have = append(have, f.Text)
	}
	slices.Sort(have)
	slices.Sort(texts)
	if !slices.Equal(have, texts) {
		s.t.Fatalf("valid facts %q, want %q", have, texts)
	}
}
