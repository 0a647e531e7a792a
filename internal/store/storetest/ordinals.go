package storetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func testOrdinals(t *testing.T, s suite) {
	t.Run("without a gap under concurrency", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		const writers, each = 16, 40
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for i := range each {
					// Every id is said by two writers, in two sessions of one scope.
					sc := user("ana", fmt.Sprintf("s%d", i%2))
					if _, err := st.PutEpisode(t.Context(), episode(sc, fmt.Sprintf("%d-%d", w/2, i), i, "text")); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		list := must(st.EpisodeRange(t.Context(), user("ana", ""), events.Range{From: 0, To: 1 << 40}))(t)
		if len(list) != writers/2*each {
			t.Fatalf("%d episodes, want %d", len(list), writers/2*each)
		}
		for i, e := range list {
			if e.Ordinal != uint64(i+1) {
				t.Fatalf("episode %d has ordinal %d", i, e.Ordinal)
			}
		}
	})
	t.Run("contiguous whatever is said", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		run := 0
		rapid.Check(t, func(rt *rapid.T) {
			run++
			project := fmt.Sprintf("p%d", run)
			want := map[scope.Scope]uint64{}
			known := map[string]uint64{}
			for range rapid.IntRange(1, 12).Draw(rt, "n") {
				sc := scope.Scope{
					Project: project,
					User:    rapid.SampledFrom([]string{"", "a", "b"}).Draw(rt, "user"),
					Session: rapid.SampledFrom([]string{"s", "t"}).Draw(rt, "session"),
				}
				id := rapid.SampledFrom([]string{"1", "2", "3"}).Draw(rt, "id")
				p, err := st.PutEpisode(t.Context(), episode(sc, id, 0, "x"))
				if err != nil {
					rt.Fatal(err)
				}
				key := sc.String() + id
				if known[key] == 0 {
					want[sc.Fact()]++
					known[key] = want[sc.Fact()]
				}
				if p.Episode.Ordinal != known[key] || p.State.LastOrdinal != want[sc.Fact()] {
					rt.Fatalf("%s: ordinal %d of %d, want %d of %d", key, p.Episode.Ordinal, p.State.LastOrdinal, known[key], want[sc.Fact()])
				}
			}
		})
	})
	t.Run("counted on behind what is lost", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		fact := user("ana", "")
		say(t, st, user("ana", "s"), 2)
		for _, last := range []uint64{0, 2, 7, 3} {
			if err := st.CountFrom(t.Context(), fact, last); err != nil {
				t.Fatal(err)
			}
		}
		if err := st.CountFrom(t.Context(), user("bea", ""), 4); err != nil {
			t.Fatal(err)
		}
		p := put(t, st, episode(user("ana", "s"), "next", 3, "x"))
		if p.Episode.Ordinal != 8 || p.State.LastOrdinal != 8 {
			t.Errorf("the next is %d of %d, want 8", p.Episode.Ordinal, p.State.LastOrdinal)
		}
		if p := put(t, st, episode(user("bea", "s"), "first", 3, "x")); p.Episode.Ordinal != 5 {
			t.Errorf("the first that is left is %d, want 5", p.Episode.Ordinal)
		}
		equal(t, "(0,8]", []string{"e1", "e2", "next"}, episodeIDs(must(st.EpisodeRange(t.Context(), fact, events.Range{To: 8}))(t)))
		if again := put(t, st, episode(user("ana", "s"), "e2", 1, "text 2")); again.Episode.Ordinal != 2 {
			t.Errorf("what is there has ordinal %d now, want 2", again.Episode.Ordinal)
		}
	})
	t.Run("ranges", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		all := say(t, st, user("ana", "s"), 10)
		fact := user("ana", "")
		equal(t, "(2,5]", all[2:5], must(st.EpisodeRange(t.Context(), fact, events.Range{From: 2, To: 5}))(t))
		equal(t, "empty", none[memory.Episode](), must(st.EpisodeRange(t.Context(), fact, events.Range{From: 5, To: 5}))(t))
		at := []memory.Episode{all[1], all[3], all[4]}
		equal(t, "at ordinals", at, must(st.EpisodesAt(t.Context(), fact, []uint64{4, 99, 2, 5, 0}))(t))
		equal(t, "at none", none[memory.Episode](), must(st.EpisodesAt(t.Context(), fact, nil))(t))
		equal(t, "of another", none[memory.Episode](), must(st.EpisodesAt(t.Context(), user("nobody", ""), []uint64{1}))(t))
		equal(t, "by id", []memory.Episode{all[1], all[8]}, must(st.EpisodesByID(t.Context(), fact, []string{"e9", "e2", "nope"}))(t))
		equal(t, "no ids", none[memory.Episode](), must(st.EpisodesByID(t.Context(), fact, nil))(t))
	})
	t.Run("before", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		for i := range 12 {
			put(t, st, episode(user("ana", []string{"s", "t", ""}[i%3]), fmt.Sprintf("e%d", i+1), -i, "x"))
		}
		got := must(st.EpisodesBefore(t.Context(), user("ana", "s"), 10, 2))(t)
		equal(t, "session s", []string{"e4", "e7"}, episodeIDs(got))
		equal(t, "no session", []string{"e3", "e6", "e9"}, episodeIDs(must(st.EpisodesBefore(t.Context(), user("ana", ""), 12, 9))(t)))
		equal(t, "unknown", none[memory.Episode](), must(st.EpisodesBefore(t.Context(), user("ana", "z"), 12, 9))(t))
	})
}

func none[T any]() []T { return nil }

func testRecent(t *testing.T, s suite) {
	t.Run("order and ties", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		for i, minute := range []int{5, 1, 5, 9, 1} {
			put(t, st, episode(user("ana", "s"), fmt.Sprintf("e%d", i+1), minute, "x"))
		}
		got := must(st.Recent(t.Context(), scope.Under(user("ana", "s")), store.RecentQuery{Limit: 10}))(t)
		equal(t, "order", []string{"e4", "e3", "e1", "e5", "e2"}, episodeIDs(got))
		got = must(st.Recent(t.Context(), scope.Under(user("ana", "")), store.RecentQuery{
			Limit: 10, After: got[4].Timestamp, Before: got[0].Timestamp,
		}))(t)
		equal(t, "bounds are exclusive", []string{"e3", "e1"}, episodeIDs(got))
		got = must(st.Recent(t.Context(), scope.Under(user("ana", "s")), store.RecentQuery{Limit: 4, Oldest: true}))(t)
		equal(t, "oldest first", []string{"e2", "e5", "e1", "e3"}, episodeIDs(got))
	})
	t.Run("limits", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		for _, limit := range []int{-1, 0, 1001} {
			if _, err := st.Recent(t.Context(), scope.Selector{Project: "p"}, store.RecentQuery{Limit: limit}); err == nil {
				t.Errorf("limit %d was taken", limit)
			}
		}
	})
	t.Run("widening", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		var all []scope.Scope
		for _, u := range []string{"", "ana", "bea"} {
			for _, a := range []string{"", "bot"} {
				for _, x := range []string{"", "s"} {
					sc := scope.Scope{Project: "p", User: u, Agent: a, Session: x}
					if sc.Validate() == nil {
						all = append(all, sc)
						put(t, st, episode(sc, "e", len(all), "x"))
					}
				}
			}
		}
		levels := []*string{nil, pointer(""), pointer("ana"), pointer("bot"), pointer("s"), pointer("nobody")}
		for _, u := range levels {
			for _, a := range levels {
				for _, x := range levels {
					sel := scope.Selector{Project: "p", User: u, Agent: a, Session: x}
					var want, got []string
					for _, sc := range slices.Backward(all) {
						if sel.Match(sc) {
							want = append(want, sc.String())
						}
					}
					for _, e := range must(st.Recent(t.Context(), sel, store.RecentQuery{Limit: 100}))(t) {
						got = append(got, e.Scope.String())
					}
					equal(t, sel.String(), want, got)
				}
			}
		}
	})
	t.Run("pages make the whole", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		// One id and few instants, so that pages end within ties across scopes.
		for i := range 60 {
			e := episode(user(fmt.Sprintf("u%d", i%7), fmt.Sprintf("s%d", i)), "e", i%4, "x")
			put(t, st, e)
		}
		sel := scope.Selector{Project: "p"}
		whole := must(st.Recent(t.Context(), sel, store.RecentQuery{Limit: 100}))(t)
		for _, size := range []int{1, 7, 59, 60} {
			equal(t, fmt.Sprintf("pages of %d", size), whole, pages(t, st, sel, store.RecentQuery{Limit: size}))
		}
		slices.Reverse(whole)
		for _, size := range []int{1, 7, 59, 60} {
			equal(t, fmt.Sprintf("oldest first, pages of %d", size), whole, pages(t, st, sel, store.RecentQuery{Limit: size, Oldest: true}))
		}
	})
}

// pages reads page after page to the end.
func pages(t *testing.T, st store.Store, sel scope.Selector, q store.RecentQuery) (all []memory.Episode) {
	t.Helper()
	for {
		page := must(st.Recent(t.Context(), sel, q))(t)
		if len(page) == 0 {
			return all
		}
		all = append(all, page...)
		c := store.CursorOf(page[len(page)-1])
		q.Cursor = &c
	}
}
