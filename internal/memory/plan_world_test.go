package memory

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

var (
	alice = scope.Scope{Project: "p", User: "alice"}
	noon  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

// world is what effects have made of one scope, in memory.
type world struct {
	state    State
	facts    map[string]events.Fact
	versions map[Address]events.Fact
	entities map[string]events.Entity
	edges    map[string]events.Edge
	holds    map[string]events.Hold
}

func newWorld() *world {
	return &world{
		state:    State{Scope: alice, Watermarks: map[string]uint64{}},
		facts:    map[string]events.Fact{},
		versions: map[Address]events.Fact{},
		entities: map[string]events.Entity{},
		edges:    map[string]events.Edge{},
		holds:    map[string]events.Hold{},
	}
}

func (w *world) input(b events.DeltasDecided) PlanInput {
	in := PlanInput{State: w.state, Batch: b, At: noon, CorrelationID: "request"}
	for _, id := range NeededFacts(b) {
		if f, ok := w.facts[id]; ok {
			in.Facts = append(in.Facts, f)
		}
	}
	for _, v := range w.versions {
		in.Earlier = append(in.Earlier, v)
	}
	names := map[string]bool{}
	for _, name := range NeededNames(b, in.Facts) {
		names[EntityKey(name)] = true
	}
	needed := NeededEntities(b, in.Facts)
	for _, e := range w.entities {
		if slices.Contains(needed, e.ID) || slices.ContainsFunc(append([]string{e.CanonicalName}, e.Aliases...), func(name string) bool { return names[EntityKey(name)] }) {
			in.Entities = append(in.Entities, e)
		}
	}
	for _, h := range w.holds {
		in.Held = append(in.Held, h)
	}
	return in
}

// commit plans a batch and applies what comes of it, by way of the wire.
func (w *world) commit(t fataler, in PlanInput) []events.EffectCommitted {
	t.Helper()
	effects, err := Plan(in)
	if err != nil {
		t.Fatalf("plan: %v", err)
	}
	for _, e := range effects {
		raw, err := json.Marshal(e)
		if err != nil {
			t.Fatalf("encode: %v", err)
		}
		var back events.EffectCommitted
		if err := json.Unmarshal(raw, &back); err != nil {
			t.Fatalf("decode: %v", err)
		}
		w.apply(t, back)
	}
	return effects
}

func (w *world) apply(t fataler, e events.EffectCommitted) {
	t.Helper()
	if err := e.Validate(); err != nil {
		t.Fatalf("effect: %v", err)
	}
	if e.Revision != w.state.Revision+1 {
		t.Fatalf("effect has revision %d behind %d", e.Revision, w.state.Revision)
	}
	w.state.Revision = e.Revision
	for _, f := range e.Facts {
		w.facts[f.ID] = f
	}
	for _, f := range e.Versions {
		if _, known := w.versions[AddressOf(f)]; !known {
			w.versions[AddressOf(f)] = f
		}
	}
	for _, x := range e.Entities {
		w.entities[x.ID] = x
	}
	for _, x := range e.Edges {
		w.edges[x.ID] = x
	}
	for _, h := range e.Holds {
		w.holds[h.ID] = h
	}
	for _, id := range e.Released {
		delete(w.holds, id)
	}
	if e.Watermark != nil {
		w.state.Watermarks[e.Rule] = *e.Watermark
	}
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func provenance(id string, reason events.Reason, sources ...string) events.Provenance {
	return events.Provenance{
		ID: id, CandidateID: "cand-" + id, SourceEpisodeIDs: sources, PromotionTS: noon,
		RuleID: "pattern", Confidence: 0.9, Reason: reason, DecidedBy: "rules@v1",
	}
}

func must[D any](d D, err error) D {
	if err != nil {
		panic(err)
	}
	return d
}

func fact(id, text string, from time.Time, sources ...string) *events.Fact {
	return &events.Fact{
		ID: id, Kind: events.FactSemantic, Category: "work", Subject: "Anna", Predicate: "works_at", Object: "Fenwick",
		Text: text, Hash: HashText(text), Confidence: 0.9, DecayRate: 0.1, EventTime: from, CreatedAt: from, UpdatedAt: from,
		ValidFrom: from, SourceType: events.SourceConversation, SourceRole: events.RoleUser, RuleID: "pattern",
		SourceEpisodeIDs: sources,
	}
}

func batch(deltas ...events.Delta) events.DeltasDecided {
	b := events.DeltasDecided{
		Batch:    events.Batch{Header: events.Header{Scope: alice}, Rule: RuleTurn, Range: events.Range{From: 0, To: 3}, Cause: events.CauseEvery},
		Deltas:   deltas,
		Mentions: map[string][]events.Mention{},
	}
	for _, d := range deltas {
		prov := d.Provenance()
		b.Candidates = append(b.Candidates, events.Candidate{ID: prov.CandidateID, EventTime: noon, SessionIDs: []string{"s"}})
		b.Mentions[prov.ID] = []events.Mention{
			{Name: "Anna", Type: events.EntityPerson}, {Name: "Fenwick", Type: events.EntityOrganization, Aliases: []string{"Fenwick Labs"}},
		}
	}
	return b
}

func addFact(id string, f *events.Fact) events.Delta {
	return must(events.NewAdd(provenance(id, events.ReasonNew, f.SourceEpisodeIDs...), events.FactPayload{Fact: f}))
}

func updateFact(id string, reason events.Reason, f *events.Fact, replaces ...string) events.Delta {
	return must(events.NewUpdate(provenance(id, reason, f.SourceEpisodeIDs...), events.FactPayload{Fact: f}, replaces))
}

func deleteFacts(id string, reason events.Reason, ids ...string) events.Delta {
	return must(events.NewDelete(provenance(id, reason, "e9"), ids))
}

func noopAbout(id string, reason events.Reason, about string, sources ...string) events.Delta {
	return must(events.NewNoop(provenance(id, reason, sources...), about))
}

func one(t *testing.T, effects []events.EffectCommitted) events.EffectCommitted {
	t.Helper()
	if len(effects) != 1 {
		t.Fatalf("%d effects, want 1", len(effects))
	}
	return effects[0]
}

func jsonOf(t fataler, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	return string(raw)
}
