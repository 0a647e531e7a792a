package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func testApply(t *testing.T, s suite) {
	ana := user("ana", "")
	exact := scope.Exactly(ana)
	t.Run("guarded by revision", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		f := fact("f1", 0, "tea")
		if err := st.Apply(t.Context(), effect(ana, 2, withFacts(f)), 9); !errors.Is(err, store.ErrBehind) {
			t.Errorf("an effect too far: %v, want ErrBehind", err)
		}
		if _, err := st.Fact(t.Context(), exact, "f1"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("it changed something: %v", err)
		}
		apply(t, st, effect(ana, 1, withFacts(f)))
		apply(t, st, effect(ana, 1, withFacts(next(f, "coffee"))))
		if got := must(st.Fact(t.Context(), exact, "f1"))(t); got.Text != "tea" {
			t.Errorf("an effect of the past wrote %q", got.Text)
		}
		if err := st.Apply(t.Context(), effect(ana, 3, withFacts(next(f, "coffee"))), 9); !errors.Is(err, store.ErrBehind) {
			t.Errorf("a gap: %v, want ErrBehind", err)
		}
		equal(t, "state", memory.State{Scope: ana, Revision: 1, AuditSeq: 101}, must(st.State(t.Context(), ana))(t))
	})
	t.Run("guarded by incarnation", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		young := effect(ana, 1, withFacts(fact("f1", 0, "tea")))
		young.Incarnation = 1
		apply(t, st, young)
		if err := st.Apply(t.Context(), effect(ana, 2, withFacts(fact("f2", 0, "old"))), 9); !errors.Is(err, store.ErrIncarnation) {
			t.Errorf("an older incarnation: %v, want ErrIncarnation", err)
		}
		if n := len(must(st.Facts(t.Context(), exact, store.FactQuery{Limit: 9}))(t)); n != 1 {
			t.Errorf("%d facts", n)
		}
	})
	t.Run("refused whole", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		bad := effect(ana, 1, withFacts(fact("f1", 0, "tea")))
		bad.Facts[0].Metadata = map[string]any{"no": func() {}}
		if err := st.Apply(t.Context(), bad, 1); err == nil {
			t.Error("a fact that cannot be stored was taken")
		}
		if st := must(st.State(t.Context(), ana))(t); st.Revision != 0 {
			t.Errorf("revision %d", st.Revision)
		}
	})
	t.Run("everything in one step", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		say(t, st, user("ana", "s"), 3)
		f := fact("f1", 0, "tea")
		whole := effect(ana, 1, func(e *events.EffectCommitted) {
			covering("turn", 0, 3)(e)
			e.Facts = []events.Fact{f}
			e.Entities = []events.Entity{{ID: "n1", CanonicalName: "Ana López", Type: events.EntityPerson, Aliases: []string{"Anita"}, FirstSeen: epoch, LastUpdated: epoch, MentionCount: 1}}
			edge := func(id string, kind events.EdgeType, from, to string) events.Edge {
				return events.Edge{ID: id, SourceID: from, TargetID: to, Type: kind, Predicate: "knows", Weight: 1, Confidence: 1, Evidence: []string{"f1"}, ValidFrom: epoch, CreatedAt: epoch}
			}
			e.Edges = []events.Edge{
				edge("g1", events.EdgeRelation, "n1", "n2"), edge("g2", events.EdgeCausal, "n3", "n1"), edge("g3", events.EdgeRelation, "n2", "n3"),
				edge("g4", events.EdgeSupersedes, "n1", "n2"),
			}
			e.Holds = []events.Hold{{ID: "h2", HeldAt: epoch.Add(time.Second), Why: "hedged"}, {ID: "h1", HeldAt: epoch.Add(time.Minute), Why: "hedged"}, {ID: "h0", HeldAt: epoch.Add(time.Second), Why: "hedged"}}
			e.Outcomes = []events.Outcome{{CorrelationID: "c1", Rule: "turn", Revision: 1, Results: []events.Result{{Event: events.ChangeAdd, FactID: "f1"}}}}
		})
		apply(t, st, whole)
		ctx := t.Context()
		got := must(st.Fact(ctx, exact, "f1"))(t)
		want := store.Fact{Fact: f, Scope: ana, Strength: 0.8, LastAccessed: f.CreatedAt}
		equal(t, "fact", want, got)
		for _, name := range []string{"ana lópez", "ANITA", "  Ana   López "} {
			equal(t, "entity "+name, whole.Entities, must(st.Entities(ctx, ana, []string{name, "nobody"}))(t))
		}
		equal(t, "all entities", whole.Entities, must(st.Entities(ctx, ana, nil))(t))
		equal(t, "no entity", 0, len(must(st.Entities(ctx, ana, []string{}))(t)))
		for node, want := range map[string][]events.Edge{"n1": whole.Edges[:2], "n2": {whole.Edges[0], whole.Edges[2]}, "n4": nil} {
			equal(t, "edges of "+node, want, must(st.Edges(ctx, ana, []string{node}))(t))
		}
		equal(t, "edges of two", whole.Edges[:3], must(st.Edges(ctx, ana, []string{"n1", "n3"}))(t))
		equal(t, "all edges", whole.Edges[:3], must(st.Edges(ctx, ana, nil))(t))
		equal(t, "no edge", 0, len(must(st.Edges(ctx, ana, []string{}))(t)))
		equal(t, "edges of another scope", 0, len(must(st.Edges(ctx, user("ben", "s").Fact(), nil))(t)))
		equal(t, "holds", []events.Hold{whole.Holds[2], whole.Holds[0], whole.Holds[1]}, must(st.Holds(ctx, ana))(t))

		renamed := whole.Entities[0]
		renamed.Aliases, renamed.MentionCount = []string{"Annie"}, 2
		apply(t, st, effect(ana, 2, func(e *events.EffectCommitted) {
			e.Released = []string{"h0", "nope"}
			e.Entities = []events.Entity{renamed}
		}))
		if must(st.State(ctx, ana))(t).NoHolds {
			t.Error("the state says that nothing was ever held")
		}
		equal(t, "released", []events.Hold{whole.Holds[0], whole.Holds[1]}, must(st.Holds(ctx, ana))(t))
		equal(t, "old alias", 0, len(must(st.Entities(ctx, ana, []string{"anita"}))(t)))
		equal(t, "new alias", []events.Entity{renamed}, must(st.Entities(ctx, ana, []string{"annie"}))(t))
	})
	t.Run("access", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		ctx := t.Context()
		f := fact("f1", 0, "tea")
		apply(t, st, effect(ana, 1, withFacts(f)))
		at := epoch.Add(48 * time.Hour)
		if err := st.Touch(ctx, ana, []string{"f1", "nope", "f1"}, at); err != nil {
			t.Fatal(err)
		}
		if err := st.Touch(ctx, user("nobody", ""), []string{"f1"}, at); err != nil {
			t.Fatal(err)
		}
		got := must(st.Fact(ctx, exact, "f1"))(t)
		strength := memory.Reinforce(0.8, 0.1, f.CreatedAt, at, 1)
		if got.AccessCount != 1 || !got.LastAccessed.Equal(at) || got.Strength != strength || got.Confidence != 0.8 || got.Revision != 1 {
			t.Errorf("touched: %+v, want strength %g", got, strength)
		}
		equal(t, "not in the export", []events.Fact{f}, must(st.Snapshot(ctx, ana))(t).Facts)
		apply(t, st, effect(ana, 2, withFacts(next(f, "coffee"))))
		if got := must(st.Fact(ctx, exact, "f1"))(t); got.AccessCount != 1 || got.Strength != strength || !got.LastAccessed.Equal(at) {
			t.Errorf("an update must keep the statistics: %+v", got)
		}
		sure := next(next(f, "coffee"), "coffee")
		sure.Confidence, sure.Confirmed, sure.DecayRate = 1, true, 0
		apply(t, st, effect(ana, 3, withFacts(sure)))
		if got := must(st.Fact(ctx, exact, "f1"))(t); got.Strength != 1 || got.AccessCount != 1 {
			t.Errorf("a confirmation sets the strength: %+v", got)
		}
		if st := must(st.State(ctx, ana))(t); st.Revision != 3 {
			t.Errorf("accesses moved the revision to %d", st.Revision)
		}
	})
	t.Run("any order of deliveries gives one state", func(t *testing.T) {
		t.Parallel()
		run := 0
		st := s.open(t)
		rapid.Check(t, func(rt *rapid.T) {
			run++
			straight, shuffled := user(fmt.Sprintf("a%d", run), ""), user(fmt.Sprintf("b%d", run), "")
			n := rapid.IntRange(1, 6).Draw(rt, "effects")
			versions := map[string]events.Fact{}
			var changes []func(*events.EffectCommitted)
			for i := range n {
				id := rapid.SampledFrom([]string{"f1", "f2", "f3"}).Draw(rt, "fact")
				old, known := versions[id]
				now := fact(id, i, fmt.Sprintf("text %d", i))
				if known {
					now = next(old, fmt.Sprintf("text %d", i))
				}
				versions[id] = now
				changes = append(changes, func(e *events.EffectCommitted) {
					covering("turn", uint64(i), uint64(i+1))(e)
					e.Facts = []events.Fact{now}
					if known {
						e.Versions = []events.Fact{old}
					}
				})
			}
			for i, change := range changes {
				if err := st.Apply(t.Context(), effect(straight, uint64(i+1), change), uint64(i+1)); err != nil {
					rt.Fatal(err)
				}
			}
			// Deliver at random, again and again, until all of them have come.
			for done := uint64(0); done < uint64(n); {
				i := uint64(rapid.IntRange(1, n).Draw(rt, "delivery"))
				err := st.Apply(t.Context(), effect(shuffled, i, changes[i-1]), i)
				switch {
				case i > done+1:
					if !errors.Is(err, store.ErrBehind) {
						rt.Fatalf("effect %d at revision %d: %v", i, done, err)
					}
					// Roll forward, as the consolidator does with a scope that is behind.
					err = st.Apply(t.Context(), effect(shuffled, done+1, changes[done]), done+1)
					done++
				case i == done+1:
					done++
				}
				if err != nil {
					rt.Fatal(err)
				}
			}
			a, b := must(st.Snapshot(t.Context(), straight))(t), must(st.Snapshot(t.Context(), shuffled))(t)
			b.Scope = a.Scope
			equal(t, "snapshots", a, b)
		})
	})
}
