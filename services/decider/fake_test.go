package decider

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"palimpsest/internal/decide"
	"palimpsest/internal/decide/decidetest"
	"palimpsest/internal/decide/deterministic"
	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	owner = scope.Scope{Project: "default", User: "bo"}
	noon  = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
)

// fake is the store of one scope. Roles that the decider has no use for are
// those of the nil interfaces.
type fake struct {
	store.FactReader
	mem         *decidetest.Memory
	incarnation uint64
	// onState runs before each answer of State, with the number of the call.
	onState func(call int)
	// onLookup runs before each lookup by hash.
	onLookup func()
	states   int
	// lost is what a read ends with during which rows were lost.
	lost error
	err  error
}

func newFake() *fake { return &fake{mem: decidetest.NewMemory(owner)} }

func (f *fake) ReadWhole(_ context.Context, read func() error) error {
	return cmp.Or(read(), f.lost)
}

func (f *fake) State(_ context.Context, s scope.Scope) (memory.State, error) {
	f.states++
	if f.onState != nil {
		f.onState(f.states)
	}
	return memory.State{Scope: s, Revision: f.mem.Revision(), Incarnation: f.incarnation}, f.err
}

func (f *fake) Holds(context.Context, scope.Scope) ([]events.Hold, error) { return f.mem.Held(), nil }

func (f *fake) Versions(ctx context.Context, _ scope.Selector, id string) ([]store.Fact, error) {
	return rows(f.mem.Versions(ctx, id))
}

func (f *fake) FactsByID(ctx context.Context, _ scope.Scope, ids []string) ([]store.Fact, error) {
	return rows(f.mem.ByID(ctx, ids))
}

func (f *fake) FactsByHash(ctx context.Context, _ scope.Scope, hashes []string) ([]store.Fact, error) {
	if f.onLookup != nil {
		f.onLookup()
	}
	return rows(f.mem.ByHash(ctx, hashes))
}

func (f *fake) FactsByPredicate(ctx context.Context, _ scope.Scope, subject, predicate string) ([]store.Fact, error) {
	return rows(f.mem.ByPredicate(ctx, subject, predicate))
}

func (f *fake) FactsByTriple(ctx context.Context, _ scope.Scope, ts []events.Triple) ([]store.Fact, error) {
	return rows(f.mem.ByTriple(ctx, ts))
}

func (f *fake) Facts(_ context.Context, _ scope.Selector, q store.FactQuery) ([]store.Fact, error) {
	return rows(slices.DeleteFunc(f.mem.Facts(), func(x events.Fact) bool {
		return q.Session != nil && !slices.Contains(x.SessionIDs, *q.Session)
	}), nil)
}

func (f *fake) SearchText(ctx context.Context, _ scope.Selector, text string, q store.SearchQuery) ([]store.Hit, error) {
	found, err := rows(f.mem.Similar(ctx, text, q.Limit))
	hits := make([]store.Hit, len(found))
	for i := range found {
		hits[i].Fact = &found[i]
	}
	return hits, err
}

func (f *fake) SearchVector(context.Context, scope.Selector, []float32, store.SearchQuery) ([]store.Hit, error) {
	return nil, errors.New("a decision must not rest on vectors")
}

func rows(facts []events.Fact, err error) ([]store.Fact, error) {
	out := make([]store.Fact, len(facts))
	for i, f := range facts {
		out[i] = store.Fact{Fact: f, Scope: owner}
	}
	return out, err
}

func open(t *testing.T, f *fake, cfg Config) *Service {
	t.Helper()
	s, err := New(cfg, Deps{
		State: f, Whole: f, Facts: f, Search: f,
		Deciders: map[string]decide.Decider{DefaultDecider: deterministic.New()},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// says is a candidate from an episode on the n-th day before noon.
func says(episode, predicate, object string, ordinal uint64) events.Candidate {
	return events.Candidate{
		ID: "c-" + episode + "-" + object, Kind: events.FactSemantic, Subject: "user", Predicate: predicate, Object: object,
		Text: "The user " + predicate + " " + object + ".", EvidenceQuote: object, Confidence: 0.9, Explicit: true,
		Sensitivity: events.SensitivityNone, Cardinality: events.Many, SourceEpisodeIDs: []string{episode}, Ordinal: ordinal,
		SessionIDs: []string{"s1"}, SourceRole: events.RoleUser, EventTime: noon.Add(time.Duration(ordinal) * time.Minute),
		Extractor: "test@1", RuleID: "test",
		Entities: []events.Mention{{Name: object, Type: events.EntityConcept}},
	}
}

func batch(candidates ...events.Candidate) events.Event[events.CandidatesExtracted] {
	return events.Event[events.CandidatesExtracted]{
		Meta: events.Meta{ID: "m1", Time: noon.Add(time.Hour), Sequence: 7, Delivery: 1, Scope: owner},
		Data: events.CandidatesExtracted{
			Batch: events.Batch{
				Header: events.Header{Scope: owner}, Rule: memory.RuleTurn, Cause: events.CauseEvery, Range: events.Range{From: 3, To: 4},
			},
			SessionEnds: []events.SessionEnd{{Session: "s1", LastOrdinal: 4}},
			Episodes:    []events.EpisodeRef{{ID: "e1", Ordinal: 4}},
			Candidates:  candidates,
		},
	}
}

// decided runs a batch and returns the deltas' batch and the dead letters.
func decided(t *testing.T, s *Service, in events.Event[events.CandidatesExtracted]) (events.DeltasDecided, []events.MessageBuried) {
	t.Helper()
	payloads, err := s.decide(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	var letters []events.MessageBuried
	for _, p := range payloads {
		if err := p.Validate(); err != nil {
			t.Errorf("%s is invalid: %v", p.Kind(), err)
		}
		if letter, ok := p.(events.MessageBuried); ok {
			letters = append(letters, letter)
		}
	}
	out, ok := payloads[0].(events.DeltasDecided)
	if !ok {
		t.Fatalf("first payload is %T", payloads[0])
	}
	return out, letters
}

func kinds(deltas events.Deltas) []string {
	out := []string{}
	for _, d := range deltas {
		out = append(out, string(d.Kind())+" "+string(d.Provenance().Reason))
	}
	return out
}
