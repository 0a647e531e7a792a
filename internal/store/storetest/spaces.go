package storetest

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"palimpsest/internal/embed"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// other is an embedder that the store was not opened for.
func other(name string, dimensions int) embed.Info {
	return embed.Info{Name: name, Version: "1", Dimensions: dimensions}
}

// build begins the space of an embedder.
func build(t *testing.T, st store.Store, info embed.Info) {
	t.Helper()
	if err := st.BuildSpace(t.Context(), info); err != nil {
		t.Fatal(err)
	}
}

// embedIn plays the embedding loop in one space, for at most so many texts.
func embedIn(t *testing.T, st store.Store, space uint64, most int, of func(text string) []float32) (ids []string) {
	t.Helper()
	for len(ids) < most {
		list := must(st.PendingVectors(t.Context(), space, min(100, most-len(ids))))(t)
		if len(list) == 0 {
			break
		}
		vectors := make([]store.Vector, len(list))
		for i, p := range list {
			vectors[i] = store.Vector{Ref: p.Ref, Values: of(p.Text)}
			ids = append(ids, p.Ref.ID)
		}
		if err := st.PutVectors(t.Context(), vectors); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(ids)
	return ids
}

// move takes the change of the embedder to its end.
func (s suite) move(t *testing.T, st store.Store) {
	t.Helper()
	for !must(st.MoveSpaces(t.Context()))(t) {
		if s.opts.Later != nil {
			s.opts.Later(st)
		}
		if t.Context().Err() != nil {
			t.Fatal(t.Context().Err())
		}
	}
}

func searchIn(t *testing.T, st store.Store, space uint64, target store.Target, v []float32) []string {
	t.Helper()
	q := store.SearchQuery{Target: target, Limit: 10, Space: space}
	return hitIDs(must(st.SearchVector(t.Context(), scope.Under(user("ana", "")), v, q))(t))
}

// testSpaces: the embedder changes while the store answers.
func testSpaces(t *testing.T, s suite) {
	n := s.opts.dimensions()
	ana := user("ana", "")
	session := user("ana", "s")
	old := func(text string) []float32 { return axis(n, len(text)) }
	// held stores rows with vectors in the first space.
	held := func(t *testing.T) store.Store {
		t.Helper()
		st := s.open(t)
		put(t, st, episode(session, "e1", 0, "one"))
		secret := episode(session, "e2", 1, "secret")
		secret.Mode = events.ModeIncognito
		put(t, st, secret)
		apply(t, st, effect(ana, 1, withFacts(fact("f1", 2, "three"))))
		embedAll(t, st, old)
		return st
	}
	t.Run("from one embedder to another", func(t *testing.T) {
		t.Parallel()
		for name, d := range map[string]int{"of its dimensions": n, "of others": n + 3} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				st := held(t)
				first := st.Spaces().Served
				build(t, st, other("next", d))
				build(t, st, other("next", d)) // changes nothing
				next := st.Spaces().Next
				equal(t, "is built", &store.Space{ID: next.ID, Embedder: other("next", d)}, next)
				equal(t, "is served", first, st.Spaces().Served)
				if got := must(st.Stats(t.Context()))(t).VectorsBuilding; got < 2 || got > 3 {
					t.Errorf("%d are pending, want 2 or a few more", got)
				}
				put(t, st, episode(session, "e3", 3, "five!"))
				equal(t, "new in the served", []string{"e3"}, embedIn(t, st, first.ID, 9, old))
				equal(t, "not done", false, must(st.MoveSpaces(t.Context()))(t))
				equal(t, "all in the next", []string{"e1", "e3", "f1"}, embedIn(t, st, next.ID, 9, func(string) []float32 { return axis(d, 7) }))
				equal(t, "the served answers", []string{"e1", "e3"}, slices.Sorted(slices.Values(searchIn(t, st, first.ID, store.Episodes, axis(n, 3)))))
				equal(t, "by its own vectors", "e3", searchIn(t, st, 0, store.Episodes, axis(n, 5))[0])
				if _, err := st.SearchVector(t.Context(), scope.Under(ana), axis(d, 7), store.SearchQuery{Target: store.Facts, Limit: 9, Space: next.ID}); !errors.Is(err, store.ErrEmbedder) {
					t.Errorf("search in the space under construction: %v", err)
				}
				s.move(t, st)
				equal(t, "is served now", store.Spaces{Served: *next}, st.Spaces())
				q := store.SearchQuery{Target: store.Facts, Limit: 9, Space: first.ID}
				if _, err := st.SearchVector(t.Context(), scope.Under(ana), axis(n, 3), q); !errors.Is(err, store.ErrEmbedder) {
					t.Errorf("search in the space that was: %v", err)
				}
				hits := must(st.SearchVector(t.Context(), scope.Under(ana), axis(d, 7), store.SearchQuery{Target: store.Episodes, Limit: 9}))(t)
				equal(t, "found by the new", []string{"e1", "e3"}, slices.Sorted(slices.Values(hitIDs(hits))))
				equal(t, "near", true, hits[0].Score > 0.99)
				ref := store.VectorRef{Space: first.ID, Target: store.Facts, Scope: ana, ID: "f1", Revision: 1}
				if err := st.PutVectors(t.Context(), []store.Vector{{Ref: ref, Values: axis(n, 1)}}); !errors.Is(err, store.ErrEmbedder) {
					t.Errorf("put into the space that was: %v", err)
				}
				equal(t, "nothing is pending", 0, len(embedIn(t, st, 0, 9, old)))
				equal(t, "in either", 0, len(must(st.PendingVectors(t.Context(), first.ID, 9))(t)))
				build(t, st, other("third", d))
				embedIn(t, st, st.Spaces().Next.ID, 9, func(string) []float32 { return axis(d, 1) })
				s.move(t, st)
				equal(t, "and so on", []string{"f1"}, searchIn(t, st, 0, store.Facts, axis(d, 1)))
			})
		}
	})
	t.Run("a text that changes meanwhile", func(t *testing.T) {
		t.Parallel()
		st := held(t)
		build(t, st, other("next", 5))
		building := st.Spaces().Next.ID
		embedIn(t, st, building, 9, func(string) []float32 { return axis(5, 1) })
		apply(t, st, effect(ana, 2, withFacts(next(fact("f1", 2, "three"), "coffee"))))
		equal(t, "not found by the old text", 0, len(searchIn(t, st, 0, store.Facts, axis(n, 5))))
		equal(t, "waits", false, must(st.MoveSpaces(t.Context()))(t))
		equal(t, "pending in the next", []string{"f1"}, embedIn(t, st, building, 9, func(string) []float32 { return axis(5, 2) }))
		equal(t, "and in the served", []string{"f1"}, embedIn(t, st, 0, 9, old))
		s.move(t, st)
		hits := must(st.SearchVector(t.Context(), scope.Under(ana), axis(5, 2), store.SearchQuery{Target: store.Facts, Limit: 9}))(t)
		equal(t, "one vector", 1, len(hits))
		equal(t, "of the new text", true, hits[0].Score > 0.99)
	})
	t.Run("a refused text holds nothing up", func(t *testing.T) {
		t.Parallel()
		st := held(t)
		build(t, st, other("next", 5))
		list := must(st.PendingVectors(t.Context(), st.Spaces().Next.ID, 9))(t)
		equal(t, "pending", 2, len(list))
		refused := []store.RefusedVector{{Ref: list[0].Ref, Reason: "too long"}}
		if err := st.RefuseVectors(t.Context(), refused); err != nil {
			t.Fatal(err)
		}
		equal(t, "not in the served", 0, len(must(st.RefusedVectors(t.Context(), 9))(t)))
		embedIn(t, st, st.Spaces().Next.ID, 9, func(string) []float32 { return axis(5, 1) })
		s.move(t, st)
		got := must(st.RefusedVectors(t.Context(), 9))(t)
		equal(t, "refused", []string{list[0].Ref.ID}, []string{got[0].Ref.ID})
	})
	t.Run("another change before the end", func(t *testing.T) {
		t.Parallel()
		st := held(t)
		first := st.Spaces().Served
		build(t, st, other("next", 5))
		dropped := st.Spaces().Next.ID
		embedIn(t, st, dropped, 1, func(string) []float32 { return axis(5, 1) })
		build(t, st, other("third", 6))
		equal(t, "begins anew", 2, len(must(st.PendingVectors(t.Context(), st.Spaces().Next.ID, 9))(t)))
		equal(t, "what was dropped lacks nothing", 0, len(must(st.PendingVectors(t.Context(), dropped, 9))(t)))
		embedIn(t, st, st.Spaces().Next.ID, 1, func(string) []float32 { return axis(6, 1) })
		build(t, st, first.Embedder)
		equal(t, "back", store.Spaces{Served: first}, st.Spaces())
		s.move(t, st)
		equal(t, "nothing was lost", []string{"f1"}, searchIn(t, st, first.ID, store.Facts, axis(n, 5)))
		equal(t, "nothing is pending", 0, len(must(st.PendingVectors(t.Context(), 0, 9))(t)))
	})
	t.Run("without vectors", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		put(t, st, episode(session, "e1", 0, "one"))
		build(t, st, other("next", 5))
		equal(t, "served at once", other("next", 5), st.Spaces().Served.Embedder)
		embedAll(t, st, func(string) []float32 { return axis(5, 1) })
		equal(t, "found", []string{"e1"}, searchIn(t, st, 0, store.Episodes, axis(5, 1)))
	})
	t.Run("goes on after a restart", func(t *testing.T) {
		t.Parallel()
		if s.opts.Reopen == nil {
			t.Skip(s.opts.Skip["Reopen"])
		}
		st := held(t)
		build(t, st, other("next", 5))
		next := *st.Spaces().Next
		done := embedIn(t, st, next.ID, 1, func(string) []float32 { return axis(5, 1) })
		st = s.opts.Reopen(t, st)
		equal(t, "is built", &next, st.Spaces().Next)
		equal(t, "the served answers", []string{"f1"}, searchIn(t, st, 0, store.Facts, axis(n, 5)))
		rest := embedIn(t, st, next.ID, 9, func(string) []float32 { return axis(5, 1) })
		equal(t, "each once", []string{"e1", "f1"}, slices.Sorted(slices.Values(append(done, rest...))))
		must(st.MoveSpaces(t.Context()))(t)
		st = s.opts.Reopen(t, st)
		equal(t, "is served", next, st.Spaces().Served)
		s.move(t, st)
		equal(t, "found", []string{"f1"}, searchIn(t, st, 0, store.Facts, axis(5, 1)))
	})
	t.Run("searches never miss", func(t *testing.T) { s.searchesNeverMiss(t, held(t)) })
}

// searchesNeverMiss asks all the while in which the embedder changes again and again.
func (s suite) searchesNeverMiss(t *testing.T, st store.Store) {
	t.Parallel()
	n := s.opts.dimensions()
	var asking sync.WaitGroup
	stop := make(chan struct{})
	for range 3 {
		asking.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				space := st.Spaces().Served
				v := axis(space.Embedder.Dimensions, 5)
				q := store.SearchQuery{Target: store.Facts, Limit: 9, Space: space.ID}
				hits, err := st.SearchVector(t.Context(), scope.Under(user("ana", "")), v, q)
				if errors.Is(err, store.ErrEmbedder) {
					continue
				}
				if err != nil || len(hits) != 1 || hits[0].Score < 0.99 {
					t.Errorf("found %v in space %d, %v", hits, space.ID, err)
					return
				}
			}
		})
	}
	for i := range 6 {
		d := n + 1 - i%2
		build(t, st, other(string(rune('a'+i)), d))
		embedIn(t, st, st.Spaces().Next.ID, 9, func(string) []float32 { return axis(d, 5) })
		s.move(t, st)
	}
	close(stop)
	asking.Wait()
}
