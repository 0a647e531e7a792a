package storetest

import (
	"fmt"
	"slices"
	"testing"

	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func testVectors(t *testing.T, s suite) {
	n := s.opts.dimensions()
	ana := user("ana", "")
	queue := func(t *testing.T, st store.Store) (ids []string) {
		t.Helper()
		for _, p := range must(st.PendingVectors(t.Context(), 0, 100))(t) {
			ids = append(ids, p.Ref.ID)
		}
		return ids
	}
	search := func(t *testing.T, st store.Store, target store.Target, v []float32) []string {
		t.Helper()
		return hitIDs(must(st.SearchVector(t.Context(), scope.Under(ana), v, store.SearchQuery{Target: target, Limit: 10}))(t))
	}
	t.Run("life of a flag", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		put(t, st, episode(user("ana", "s"), "e1", 0, "one"))
		secret := episode(user("ana", "s"), "e2", 1, "two")
		secret.Mode = events.ModeIncognito
		put(t, st, secret)
		apply(t, st, effect(ana, 1, withFacts(fact("f1", 2, "three"))))
		old := episode(user("ana", "s"), "e3", 3, "four")
		old.Mode = events.ModeBackfill
		put(t, st, old)
		put(t, st, episode(user("ana", "s"), "e1", 0, "one"))
		equal(t, "oldest first", []string{"e1", "f1", "e3"}, queue(t, st))
		equal(t, "limit", 1, len(must(st.PendingVectors(t.Context(), 0, 1))(t)))
		var texts []string
		for _, p := range must(st.PendingVectors(t.Context(), 0, 9))(t) {
			texts = append(texts, p.Text)
		}
		equal(t, "texts", []string{"one", "three", "four"}, texts)
		equal(t, "not found yet", 0, len(search(t, st, store.Episodes, axis(n, 0))))
		embedAll(t, st, func(text string) []float32 { return axis(n, len(text)) })
		equal(t, "none left", none[string](), queue(t, st))
		equal(t, "episodes", []string{"e1", "e3"}, slices.Sorted(slices.Values(search(t, st, store.Episodes, axis(n, 3)))))
		equal(t, "nearest first", "e3", search(t, st, store.Episodes, axis(n, 4))[0])
		equal(t, "facts", []string{"f1"}, search(t, st, store.Facts, axis(n, 5)))
	})
	t.Run("the text changed while it was embedded", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		f := fact("f1", 0, "tea")
		apply(t, st, effect(ana, 1, withFacts(f)))
		held := must(st.PendingVectors(t.Context(), 0, 9))(t)
		apply(t, st, effect(ana, 2, withFacts(next(f, "coffee"))))
		if err := st.PutVectors(t.Context(), []store.Vector{{Ref: held[0].Ref, Values: axis(n, 1)}}); err != nil {
			t.Fatal(err)
		}
		equal(t, "still pending", []string{"f1"}, queue(t, st))
		equal(t, "not found by the old text", 0, len(search(t, st, store.Facts, axis(n, 1))))
		embedAll(t, st, func(string) []float32 { return axis(n, 2) })
		equal(t, "found by the new", []string{"f1"}, search(t, st, store.Facts, axis(n, 2)))
	})
	t.Run("only a new text is pending", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		f := fact("f1", 0, "tea")
		apply(t, st, effect(ana, 1, withFacts(f, fact("f2", 0, "water"))))
		embedAll(t, st, func(text string) []float32 { return axis(n, len(text)) })
		equal(t, "both, nearest first", []string{"f1", "f2"}, search(t, st, store.Facts, axis(n, 3)))
		sure := f
		sure.Revision, sure.Confidence, sure.Confirmed = 2, 1, true
		apply(t, st, effect(ana, 2, withFacts(sure)))
		equal(t, "the text is the same", none[string](), queue(t, st))
		equal(t, "and found", "f1", search(t, st, store.Facts, axis(n, 3))[0])
		apply(t, st, effect(ana, 3, withFacts(next(sure, "coffee"))))
		equal(t, "a new text", []string{"f1"}, queue(t, st))
		equal(t, "is not found by the old vector", []string{"f2"}, search(t, st, store.Facts, axis(n, 3)))
		embedAll(t, st, func(string) []float32 { return axis(n, 9) })
		equal(t, "is found by its own", "f1", search(t, st, store.Facts, axis(n, 9))[0])
	})
	t.Run("archived", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		f := fact("f1", 0, "tea")
		apply(t, st, effect(ana, 1, withFacts(f)))
		embedAll(t, st, func(string) []float32 { return axis(n, 1) })
		f.Revision, f.ArchivedAt = 2, &f.UpdatedAt
		apply(t, st, effect(ana, 2, withFacts(f)))
		equal(t, "never found", 0, len(search(t, st, store.Facts, axis(n, 1))))
	})
	t.Run("unknown rows", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		put(t, st, episode(user("ana", "s"), "e1", 0, "one"))
		for _, ref := range []store.VectorRef{
			{Target: store.Episodes, Scope: user("ana", "s"), ID: "e1", Source: "other"}, {Target: store.Episodes, Scope: user("ana", "t"), ID: "e1", Source: "app"},
			{Target: store.Facts, Scope: ana, ID: "e1", Revision: 1}, {Target: store.Facts, Scope: user("nobody", ""), ID: "e1", Revision: 1},
		} {
			if err := st.PutVectors(t.Context(), []store.Vector{{Ref: ref, Values: axis(n, 1)}}); err != nil {
				t.Errorf("%+v: %v", ref, err)
			}
		}
		equal(t, "still pending", []string{"e1"}, queue(t, st))
	})
	t.Run("found as soon as stored", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		for i := range 40 {
			id := fmt.Sprintf("e%d", i)
			put(t, st, episode(user("ana", "s"), id, i, "text"))
			embedAll(t, st, func(string) []float32 { return axis(n, i) })
			if got := search(t, st, store.Episodes, axis(n, i)); len(got) == 0 || got[0] != id {
				t.Fatalf("stored %s, found %v", id, got)
			}
		}
	})
}
