package storetest

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func scopes(t *testing.T, st store.Store, sel scope.Selector) (keys []string) {
	t.Helper()
	if err := st.Scopes(t.Context(), sel, func(sc scope.Scope) bool { keys = append(keys, sc.String()); return true }); err != nil {
		t.Fatal(err)
	}
	return keys
}

func testExport(t *testing.T, s suite) {
	st := s.open(t)
	ctx := t.Context()
	ana := user("ana", "")
	equal(t, "unknown", store.Snapshot{Scope: ana}, must(st.Snapshot(ctx, ana))(t))
	if _, _, err := st.Claim(ctx, user("claimed", ""), "turn", store.Claim{}, store.Claim{Range: events.Range{To: 1}}); err != nil {
		t.Fatal(err)
	}
	say(t, st, user("ana", "s"), 2)
	v1 := fact("f1", 0, "tea")
	want := store.Snapshot{
		Scope: ana, Revision: 1, Watermarks: map[string]uint64{"turn": 2},
		Facts:    []events.Fact{fact("f0", 0, "water"), next(v1, "coffee")},
		Versions: []events.Fact{v1},
		Entities: []events.Entity{{ID: "n1", CanonicalName: "A", Type: events.EntityPerson, FirstSeen: epoch, LastUpdated: epoch}, {ID: "n2", CanonicalName: "B", Type: events.EntityPlace, FirstSeen: epoch, LastUpdated: epoch}},
		Edges:    []events.Edge{{ID: "g1", Type: events.EdgeRelation, ValidFrom: epoch, CreatedAt: epoch}, {ID: "g2", Type: events.EdgeCausal, ValidFrom: epoch, ValidUntil: &epoch2, CreatedAt: epoch}},
		Holds:    []events.Hold{{ID: "h1", HeldAt: epoch.Add(1), Candidate: events.Candidate{ID: "h1", Text: "x"}}, {ID: "h2", HeldAt: epoch}},
	}
	apply(t, st, effect(ana, 1, func(e *events.EffectCommitted) {
		covering("turn", 0, 2)(e)
		e.Facts = []events.Fact{want.Facts[1], want.Facts[0]}
		e.Versions = want.Versions
		e.Entities = []events.Entity{want.Entities[1], want.Entities[0]}
		e.Edges = []events.Edge{want.Edges[1], want.Edges[0]}
		e.Holds = []events.Hold{want.Holds[1], want.Holds[0]}
	}))
	equal(t, "snapshot", want, must(st.Snapshot(ctx, ana))(t))
	apply(t, st, effect(ana, 2, func(e *events.EffectCommitted) { e.Versions = []events.Fact{next(v1, "never written over"), v1} }))
	again := must(st.Snapshot(ctx, ana))(t)
	equal(t, "a version stays as it was", v1, again.Versions[0])

	say(t, st, user("bea", "s"), 1)
	apply(t, st, effect(scope.Scope{Project: "p", Agent: "bot"}, 1, withFacts(v1)))
	apply(t, st, effect(scope.Scope{Project: "q", User: "ana"}, 1, withFacts(v1)))
	equal(t, "scopes that hold anything, by key", []string{"p/agent/bot/", "p/user/ana/", "p/user/bea/"}, scopes(t, st, scope.Selector{Project: "p"}))
	equal(t, "within", []string{"p/user/ana/"}, scopes(t, st, scope.Under(ana)))
	equal(t, "projects that hold anything", []string{"p", "q"}, must(st.Projects(ctx))(t))
	testDigest(t, st)
	n := 0
	if err := st.Scopes(ctx, scope.Selector{Project: "p"}, func(scope.Scope) bool { n++; return false }); err != nil || n != 1 {
		t.Errorf("stopped after %d, %v", n, err)
	}
}

// testDigest compares the digest with its definition.
func testDigest(t *testing.T, st store.Store) {
	t.Helper()
	for _, mode := range []memory.ExportMode{memory.ExportFull, memory.ExportContent} {
		var lines []memory.Line
		for _, project := range must(st.Projects(t.Context()))(t) {
			err := st.Scopes(t.Context(), scope.Selector{Project: project}, func(sc scope.Scope) bool {
				lines = append(lines, must(memory.Export(must(st.Snapshot(t.Context(), sc))(t), mode))(t)...)
				return true
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		memory.SortLines(lines)
		equal(t, "digest", memory.Digest(lines), must(store.Digest(t.Context(), st, mode))(t))
	}
}

var epoch2 = epoch.AddDate(0, 0, 1)

func testLedger(t *testing.T, s suite) {
	ana := user("ana", "")
	skip := func(from, to uint64) func(*events.EffectCommitted) {
		return func(e *events.EffectCommitted) {
			covering("turn", from, to)(e)
			e.Skipped, e.Tally = "poison", events.Tally{Episodes: int(to - from), Skipped: int(to - from)}
		}
	}
	late := func(from, to uint64, skipped string) func(*events.EffectCommitted) {
		return func(e *events.EffectCommitted) {
			covering("turn", from, to)(e)
			e.Watermark, e.Cause, e.Skipped = nil, events.CauseLate, skipped
		}
	}
	t.Run("accounts", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		say(t, st, user("ana", "s"), 10)
		say(t, st, user("bea", "s"), 2)
		apply(t, st, effect(ana, 1, covering("turn", 0, 3)))
		apply(t, st, effect(ana, 2, skip(3, 7)))
		apply(t, st, effect(ana, 3, late(4, 6, "")))
		apply(t, st, effect(ana, 4, late(4, 6, "")))
		apply(t, st, effect(ana, 5, late(3, 4, "poison again")))
		equal(t, "skipped", []events.Range{{From: 3, To: 4}, {From: 6, To: 7}}, must(st.Skipped(t.Context(), ana, "turn"))(t))
		equal(t, "skipped by another rule", none[events.Range](), must(st.Skipped(t.Context(), ana, "sleep"))(t))
		equal(t, "skipped of another scope", none[events.Range](), must(st.Skipped(t.Context(), user("bea", ""), "turn"))(t))
		apply(t, st, effect(ana, 6, func(e *events.EffectCommitted) { e.Rule = "command" }))
		want := []store.Account{
			{Scope: ana, Rule: "sleep", Accepted: 10, Pending: 10},
			{Scope: ana, Rule: "turn", Accepted: 10, Consolidated: 5, Pending: 3, Skipped: 2, Candidates: 12, Decided: 4, Held: 4, Dropped: 4},
			{Scope: user("bea", ""), Rule: "sleep", Accepted: 2, Pending: 2},
			{Scope: user("bea", ""), Rule: "turn", Accepted: 2, Pending: 2},
		}
		equal(t, "accounts", want, must(st.Accounts(t.Context(), scope.Selector{Project: "p"}, []string{"turn", "sleep"}))(t))
		equal(t, "of watermarks alone", want[1:2], must(st.Accounts(t.Context(), scope.Selector{Project: "p"}, nil))(t))
		equal(t, "of one scope", want[2:], must(st.Accounts(t.Context(), scope.Under(user("bea", "")), []string{"turn", "sleep"}))(t))
		equal(t, "of another project", none[store.Account](), must(st.Accounts(t.Context(), scope.Selector{Project: "q"}, []string{"turn"}))(t))
	})
	t.Run("what leaves the held buffer", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		say(t, st, user("ana", "s"), 9)
		apply(t, st, effect(ana, 1, covering("turn", 0, 9)))
		apply(t, st, effect(ana, 2, func(e *events.EffectCommitted) {
			covering("sleep", 0, 9)(e)
			e.Tally = events.Tally{Candidates: 3, Held: 3}
		}))
		apply(t, st, effect(ana, 3, func(e *events.EffectCommitted) {
			e.Rule = "command"
			e.Tally = events.Tally{Settled: []events.Settlement{{Rule: "sleep", Decided: 1, Dropped: 1}, {Rule: "turn", Dropped: 1}}}
		}))
		want := []store.Account{
			{Scope: ana, Rule: "sleep", Accepted: 9, Consolidated: 9, Candidates: 3, Decided: 1, Held: 1, Dropped: 1},
			{Scope: ana, Rule: "turn", Accepted: 9, Consolidated: 9, Candidates: 3, Decided: 1, Dropped: 2},
		}
		equal(t, "accounts", want, must(st.Accounts(t.Context(), scope.Selector{Project: "p"}, nil))(t))
	})
	t.Run("balances", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		run := 0
		rapid.Check(t, func(rt *rapid.T) {
			run++
			sc := scope.Scope{Project: "p", User: fmt.Sprintf("u%d", run)}
			var said, mark, revision uint64
			for range rapid.IntRange(1, 12).Draw(rt, "steps") {
				var change func(*events.EffectCommitted)
				switch rapid.IntRange(0, 3).Draw(rt, "step") {
				case 0:
					said++
					if _, err := st.PutEpisode(t.Context(), episode(sc, fmt.Sprint(said), 0, "x")); err != nil {
						rt.Fatal(err)
					}
					continue
				case 1, 2:
					if mark == said {
						continue
					}
					to := rapid.Uint64Range(mark+1, said).Draw(rt, "to")
					change = covering("turn", mark, to)
					if rapid.Bool().Draw(rt, "skipped") {
						change = skip(mark, to)
					}
					mark = to
				case 3:
					if mark == 0 {
						continue
					}
					from := rapid.Uint64Range(0, mark-1).Draw(rt, "from")
					change = late(from, rapid.Uint64Range(from+1, mark).Draw(rt, "to"), "")
				}
				revision++
				if err := st.Apply(t.Context(), effect(sc, revision, change), revision); err != nil {
					rt.Fatal(err)
				}
			}
			for _, a := range must(st.Accounts(t.Context(), scope.Under(sc), []string{"turn"}))(t) {
				if a.Accepted != said || a.Accepted != a.Consolidated+a.Pending+a.Skipped || a.Pending != said-mark || a.Candidates != a.Decided+a.Held+a.Dropped {
					rt.Fatalf("%d said, watermark %d: %+v", said, mark, a)
				}
			}
		})
	})
}

func testHealth(t *testing.T, s suite) {
	st := s.open(t)
	ctx := t.Context()
	if err := st.Ping(ctx); err != nil {
		t.Errorf("Ping: %v", err)
	}
	say(t, st, user("ana", "s"), 3)
	v1 := fact("f1", 0, "tea")
	apply(t, st, effect(user("ana", ""), 1, func(e *events.EffectCommitted) {
		e.Facts, e.Versions = []events.Fact{next(v1, "coffee")}, []events.Fact{v1}
		e.Entities = []events.Entity{{ID: "n1", CanonicalName: "A", Type: events.EntityPerson, FirstSeen: epoch, LastUpdated: epoch}}
	}))
	got := must(st.Stats(ctx))(t)
	if got.Schema == 0 || got.Bytes == 0 {
		t.Errorf("stats = %+v", got)
	}
	got.Schema, got.Bytes = 0, 0
	equal(t, "stats", store.Stats{Scopes: 1, Episodes: 3, Facts: 1, Versions: 1, Entities: 1, VectorsPending: 4}, got)

	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	ana := user("ana", "")
	sel := scope.Under(ana)
	for name, err := range map[string]error{
		"Ping": st.Ping(ctx), "Apply": st.Apply(ctx, effect(ana, 2, nil), 2), "Touch": st.Touch(ctx, ana, nil, epoch),
		"PutVectors": st.PutVectors(ctx, []store.Vector{{Ref: store.VectorRef{Target: store.Facts, Scope: ana, ID: "f1"}, Values: axis(s.opts.dimensions(), 0)}}),
		"PutCached":  st.PutCached(ctx, ana, "k", nil, epoch), "SetLastFire": st.SetLastFire(ctx, "r", epoch),
		"Scopes":     st.Scopes(ctx, sel, func(scope.Scope) bool { return true }),
		"Pending":    st.Pending(ctx, "turn", func(store.Pending) bool { return true }),
		"PutEpisode": errOf(st.PutEpisode(ctx, episode(user("ana", "s"), "9", 0, "x"))), "Recent": errOf(st.Recent(ctx, sel, store.RecentQuery{Limit: 1})),
		"Fact": errOf(st.Fact(ctx, sel, "f1")), "State": errOf(st.State(ctx, ana)), "Snapshot": errOf(st.Snapshot(ctx, ana)),
		"SearchText": errOf(st.SearchText(ctx, sel, "tea", store.SearchQuery{Target: store.Facts, Limit: 1})),
		"Stats":      errOf(st.Stats(ctx)), "Close": st.Close(),
	} {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s after Close: %v, want ErrClosed", name, err)
		}
	}
}

func errOf[T any](_ T, err error) error { return err }

func testReopen(t *testing.T, s suite) {
	if s.opts.Reopen == nil {
		t.Fatal("no Reopen, and no reason in Skip")
	}
	st := s.open(t)
	ctx := t.Context()
	ana := user("ana", "")
	said := say(t, st, user("ana", "s"), 5)
	apply(t, st, effect(ana, 1, func(e *events.EffectCommitted) {
		covering("turn", 0, 4)(e)
		e.Facts = []events.Fact{fact("f1", 0, "tea")}
	}))
	equal(t, "watched", []string{ana.String()}, pending(t, st, "turn"))
	embedAll(t, st, func(text string) []float32 { return axis(s.opts.dimensions(), len(text)) })
	state, snap := must(st.State(ctx, ana))(t), must(st.Snapshot(ctx, ana))(t)
	for range 2 {
		st = s.opts.Reopen(t, st)
		equal(t, "state", state, must(st.State(ctx, ana))(t))
		equal(t, "snapshot", snap, must(st.Snapshot(ctx, ana))(t))
		equal(t, "episodes", said, must(st.EpisodeRange(ctx, ana, events.Range{To: 9}))(t))
		equal(t, "pending", []string{ana.String()}, pending(t, st, "turn"))
		equal(t, "text", []string{"f1"}, findText(t, st, scope.Under(ana), "tea", store.Facts))
		hits := must(st.SearchVector(ctx, scope.Under(ana), axis(s.opts.dimensions(), 3), store.SearchQuery{Target: store.Facts, Limit: 5}))(t)
		equal(t, "vectors", []string{"f1"}, hitIDs(hits))
	}
	p := put(t, st, episode(user("ana", "s"), "later", 9, "x"))
	equal(t, "ordinals go on", uint64(6), p.Episode.Ordinal)
}
