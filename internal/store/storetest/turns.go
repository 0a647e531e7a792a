package storetest

import (
	"fmt"
	"slices"
	"testing"

	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// testTurns checks that pending texts are divided by partition, and between
// projects.
func testTurns(t *testing.T, s suite) {
	of := func(project string, user int) scope.Scope {
		return scope.Scope{Project: project, User: fmt.Sprintf("u%d", user), Session: "s"}
	}
	t.Run("a project with many texts does not hold up another", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		say(t, st, of("a", 1), 60)
		say(t, st, of("b", 1), 1)
		count := map[string]int{}
		for _, p := range must(st.PendingVectors(t.Context(), 0, 10))(t) {
			count[p.Ref.Scope.Project]++
		}
		if count["b"] != 1 || count["a"] < 5 || count["a"] > 9 {
			t.Errorf("of 10 texts, %v", count)
		}
	})
	t.Run("more projects than fit come one after the other", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		const projects, limit = 25, 10
		for i := range projects {
			say(t, st, of(fmt.Sprintf("p%02d", i), i), 2)
		}
		seen := map[string]bool{}
		for range (projects + limit - 1) / limit {
			list := must(st.PendingVectors(t.Context(), 0, limit))(t)
			if len(list) > limit {
				t.Fatalf("%d texts, want at most %d", len(list), limit)
			}
			for _, p := range list {
				seen[p.Ref.Scope.Project] = true
			}
		}
		equal(t, "projects that had a turn", projects, len(seen))
	})
	t.Run("partitions", func(t *testing.T) {
		if why := s.opts.Skip["Shares"]; why != "" {
			t.Skip(why)
		}
		t.Parallel()
		st := s.open(t)
		const users = 20
		for i := range users {
			say(t, st, of("p", i), 1)
			apply(t, st, effect(of("p", i).Fact(), 1, withFacts(fact("f", 0, "tea"))))
		}
		for _, limit := range []int{1000, 3} { // all fits, and not
			seen := map[scope.Scope]bool{}
			for p := range events.Partitions {
				for _, v := range must(st.PendingVectors(t.Context(), 0, limit, p))(t) {
					if got := v.Ref.Scope.Partition(events.Partitions); got != p {
						t.Errorf("asked for partition %d, got a row of %d", p, got)
					}
					seen[v.Ref.Scope.Fact()] = true
				}
			}
			if limit > users && len(seen) != users {
				t.Errorf("rows of %d users, want %d", len(seen), users)
			}
		}
		equal(t, "of two partitions", 2*countIn(users, of, 3, 7), len(must(st.PendingVectors(t.Context(), 0, 1000, 3, 7))(t)))
	})
}

// countIn is how many of the first n users are in partitions.
func countIn(n int, of func(project string, user int) scope.Scope, partitions ...int) (count int) {
	for i := range n {
		if slices.Contains(partitions, of("p", i).Partition(events.Partitions)) {
			count++
		}
	}
	return count
}

// testRefused: a text that the embedder refuses is set aside.
func testRefused(t *testing.T, s suite) {
	n := s.opts.dimensions()
	ana := user("ana", "")
	refuse := func(t *testing.T, st store.Store, ref store.VectorRef, reason string) {
		t.Helper()
		if err := st.RefuseVectors(t.Context(), []store.RefusedVector{{Ref: ref, Reason: reason}}); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(t *testing.T, st store.Store, pending int, refused ...store.RefusedVector) {
		t.Helper()
		equal(t, "pending", pending, len(must(st.PendingVectors(t.Context(), 0, 100))(t)))
		equal(t, "refused", refused, must(st.RefusedVectors(t.Context(), 100))(t))
		stats := must(st.Stats(t.Context()))(t)
		equal(t, "counts", []uint64{uint64(pending), uint64(len(refused))}, []uint64{stats.VectorsPending, stats.VectorsRefused})
	}
	aside := func(t *testing.T, st store.Store) (f events.Fact, refused []store.RefusedVector) {
		t.Helper()
		f = fact("f1", 0, "tea")
		apply(t, st, effect(ana, 1, withFacts(f, fact("f2", 1, "water"))))
		put(t, st, episode(user("ana", "s"), "e1", 2, "coffee"))
		refused = []store.RefusedVector{
			{Ref: store.VectorRef{Target: store.Facts, Scope: ana, ID: "f1", Revision: 1}, Reason: "too long"},
			{Ref: store.VectorRef{Target: store.Episodes, Scope: user("ana", "s"), ID: "e1", Source: "app"}, Reason: "no words"},
		}
		refuse(t, st, refused[0].Ref, refused[0].Reason)
		expect(t, st, 2, refused[0])
		refuse(t, st, refused[1].Ref, refused[1].Reason)
		return f, refused
	}
	t.Run("has its vector already", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		apply(t, st, effect(ana, 1, withFacts(fact("f1", 0, "tea"))))
		put(t, st, episode(user("ana", "s"), "e1", 2, "coffee"))
		held := must(st.PendingVectors(t.Context(), 0, 9))(t)
		embedAll(t, st, func(string) []float32 { return axis(s.opts.dimensions(), 1) })
		for _, p := range held {
			refuse(t, st, p.Ref, "too late")
		}
		expect(t, st, 0)
		hits := must(st.SearchVector(t.Context(), scope.Under(ana), axis(s.opts.dimensions(), 1), store.SearchQuery{Target: store.Facts, Limit: 9}))(t)
		equal(t, "found", []string{"f1"}, hitIDs(hits))
	})
	t.Run("is pending no more, and found by text", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		aside(t, st)
		equal(t, "pending", 1, len(must(st.PendingVectors(t.Context(), 0, 100))(t)))
		hits := must(st.SearchText(t.Context(), scope.Under(ana), "tea", store.SearchQuery{Target: store.Facts, Limit: 9}))(t)
		equal(t, "by text", []string{"f1"}, hitIDs(hits))
	})
	t.Run("stays refused when the store is opened again", func(t *testing.T) {
		t.Parallel()
		if s.opts.Reopen == nil {
			t.Skip(s.opts.Skip["Reopen"])
		}
		st := s.open(t)
		aside(t, st)
		st = s.opts.Reopen(t, st)
		equal(t, "pending", 1, len(must(st.PendingVectors(t.Context(), 0, 100))(t)))
		equal(t, "refused", 2, len(must(st.RefusedVectors(t.Context(), 100))(t)))
	})
	t.Run("a new text is pending", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		f, refused := aside(t, st)
		apply(t, st, effect(ana, 2, withFacts(next(f, "short"))))
		expect(t, st, 2, refused[1])
		refuse(t, st, refused[0].Ref, "of the old text")
		expect(t, st, 2, refused[1])
	})
	t.Run("a vector after all", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		_, refused := aside(t, st)
		if err := st.PutVectors(t.Context(), []store.Vector{{Ref: refused[0].Ref, Values: axis(n, 1)}}); err != nil {
			t.Fatal(err)
		}
		expect(t, st, 1, refused[1])
	})
	t.Run("unknown rows", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		refuse(t, st, store.VectorRef{Target: store.Facts, Scope: user("nobody", ""), ID: "f", Revision: 1}, "x")
		refuse(t, st, store.VectorRef{Target: store.Episodes, Scope: user("nobody", "s"), ID: "e"}, "x")
		expect(t, st, 0)
	})
}
