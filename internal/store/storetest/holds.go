package storetest

import (
	"testing"
	"time"

	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func testHolds(t *testing.T, s suite) {
	ana, bea, other := user("ana", ""), user("bea", ""), user("ana", "")
	other.Project = "q"
	// h is held at second n.
	h := func(id string, n int, factID string) events.Hold {
		at := epoch.Add(time.Duration(n) * time.Second)
		return events.Hold{
			ID: id, HeldAt: at, Why: "churn", Rule: "turn", FactID: factID, Count: 3, Since: epoch, Due: &at,
			Candidate: events.Candidate{ID: id, Text: "text of " + id, EventTime: at},
		}
	}
	filled := func(t *testing.T) store.Store {
		t.Helper()
		st := s.open(t)
		for _, in := range []struct {
			scope scope.Scope
			holds []events.Hold
		}{{ana, []events.Hold{h("h3", 3, "f1"), h("h1", 1, "f1")}}, {bea, []events.Hold{h("h2", 2, "f2"), h("h0", 3, "f3")}}, {other, []events.Hold{h("h9", 0, "f1")}}} {
			apply(t, st, effect(in.scope, 1, func(e *events.EffectCommitted) { e.Holds = in.holds }))
		}
		return st
	}
	ids := func(t *testing.T, st store.Store, sel scope.Selector, q store.HoldQuery) (ids []string) {
		t.Helper()
		for _, x := range must(st.ListHolds(t.Context(), sel, q))(t) {
			ids = append(ids, x.ID)
		}
		return ids
	}
	all := scope.Selector{Project: "p"}
	t.Run("listed", func(t *testing.T) {
		t.Parallel()
		st := filled(t)
		equal(t, "of a project", []string{"h1", "h2", "h0", "h3"}, ids(t, st, all, store.HoldQuery{Limit: 10}))
		equal(t, "of one scope", []string{"h2", "h0"}, ids(t, st, scope.Exactly(bea), store.HoldQuery{Limit: 10}))
		equal(t, "on one fact", []string{"h1", "h3"}, ids(t, st, all, store.HoldQuery{FactID: "f1", Limit: 10}))
		equal(t, "of an unknown scope", none[string](), ids(t, st, scope.Exactly(user("eve", "")), store.HoldQuery{Limit: 10}))
		var paged []string
		q := store.HoldQuery{Limit: 1}
		for range 4 {
			page := must(st.ListHolds(t.Context(), all, q))(t)
			paged = append(paged, page[0].ID)
			at := store.HoldCursorOf(page[0])
			q.Cursor = &at
		}
		equal(t, "in pages", []string{"h1", "h2", "h0", "h3"}, paged)
		equal(t, "behind the last", none[string](), ids(t, st, all, q))
		if _, err := st.ListHolds(t.Context(), all, store.HoldQuery{}); err == nil {
			t.Error("no limit is accepted")
		}
	})
	t.Run("equal in two scopes", func(t *testing.T) {
		t.Parallel()
		st := filled(t)
		apply(t, st, effect(bea, 2, func(e *events.EffectCommitted) { e.Holds = []events.Hold{h("h3", 3, "f1")} }))
		var paged []scope.Scope
		q := store.HoldQuery{FactID: "f1", Limit: 1}
		for range 3 {
			for _, x := range must(st.ListHolds(t.Context(), all, q))(t) {
				paged = append(paged, x.Scope)
				at := store.HoldCursorOf(x)
				q.Cursor = &at
			}
		}
		equal(t, "in pages", []scope.Scope{ana, ana, bea}, paged)
		equal(t, "behind the last", none[string](), ids(t, st, all, q))
	})
	t.Run("one", func(t *testing.T) {
		t.Parallel()
		st := filled(t)
		want := []store.Hold{{Hold: h("h2", 2, "f2"), Scope: bea}}
		equal(t, "by id", want, must(st.ListHolds(t.Context(), all, store.HoldQuery{ID: "h2", Limit: 1}))(t))
		equal(t, "of another project", none[string](), ids(t, st, all, store.HoldQuery{ID: "h9", Limit: 1}))
		equal(t, "counted", uint64(5), must(st.Stats(t.Context()))(t).Holds)
	})
}
