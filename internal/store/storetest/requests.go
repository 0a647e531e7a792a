package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"palimpsest/internal/store"
	"palimpsest/pkg/events"
)

func testRequests(t *testing.T, s suite) {
	st := s.open(t)
	ctx := t.Context()
	soon := time.Now().Add(time.Hour).Truncate(time.Microsecond).UTC()
	ask := store.Request{Project: "p", Route: "POST /v1/x", Key: "k", BodyHash: "h", CorrelationID: "c", Expires: soon}
	if earlier := must(st.Begin(ctx, ask))(t); earlier != nil {
		t.Errorf("the first has an earlier one: %+v", earlier)
	}
	equal(t, "under way", &ask, must(st.Begin(ctx, ask))(t))
	answered := ask
	answered.Status, answered.Body = 201, []byte(`{"ok":true}`)
	if err := st.Finish(ctx, answered); err != nil {
		t.Fatal(err)
	}
	again := ask
	again.CorrelationID = "c2"
	equal(t, "answered", &answered, must(st.Begin(ctx, again))(t))
	other := ask
	other.BodyHash = "h2"
	if _, err := st.Begin(ctx, other); !errors.Is(err, store.ErrMismatch) {
		t.Errorf("another body: %v, want ErrMismatch", err)
	}
	for _, r := range []store.Request{
		{Project: "q", Route: ask.Route, Key: "k", BodyHash: "h2", Expires: soon}, {Project: "p", Route: "other", Key: "k", BodyHash: "h2", Expires: soon},
		{Project: "p", Route: ask.Route, Key: "K", BodyHash: "h2", Expires: soon},
	} {
		if earlier := must(st.Begin(ctx, r))(t); earlier != nil {
			t.Errorf("%+v met %+v", r, earlier)
		}
	}
	past := store.Request{Project: "p", Route: "r", Key: "past", BodyHash: "h", Expires: time.Now().Add(-time.Hour)}
	must(st.Begin(ctx, past))(t)
	past.BodyHash = "h2"
	if earlier := must(st.Begin(ctx, past))(t); earlier != nil {
		t.Errorf("an expired request stands: %+v", earlier)
	}
}

func testCache(t *testing.T, s suite) {
	st := s.open(t)
	ctx := t.Context()
	ana, bea := user("ana", ""), user("bea", "")
	soon := time.Now().Add(time.Hour)
	equal(t, "nothing", 0, len(must(st.Cached(ctx, ana, "k"))(t)))
	for _, c := range []struct {
		key, value string
		expires    time.Time
	}{{"k", "one", soon}, {"k", "two", soon}, {"past", "x", time.Now().Add(-time.Second)}} {
		if err := st.PutCached(ctx, ana, c.key, []byte(c.value), c.expires); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "newest", []byte("two"), must(st.Cached(ctx, ana, "k"))(t))
	equal(t, "expired", 0, len(must(st.Cached(ctx, ana, "past"))(t)))
	equal(t, "another scope's", 0, len(must(st.Cached(ctx, bea, "k"))(t)))
}

func testOutcomes(t *testing.T, s suite) {
	st := s.open(t)
	ctx := t.Context()
	outcome := func(id string, revision uint64, memory string) events.Outcome {
		return events.Outcome{CorrelationID: id, Rule: "turn", Revision: revision, EpisodeIDs: []string{"e1"},
			Results: []events.Result{{Event: events.ChangeAdd, DeltaID: "d", FactID: "f", Memory: memory, Reason: events.ReasonNew}}}
	}
	ana := user("ana", "")
	first, second, third := outcome("c1", 1, "a"), outcome("c1", 2, "b"), outcome("c2", 2, "c")
	one := effect(ana, 1, func(e *events.EffectCommitted) { e.Outcomes = []events.Outcome{first} })
	apply(t, st, one)
	apply(t, st, effect(ana, 2, func(e *events.EffectCommitted) { e.Outcomes = []events.Outcome{second, third} }))
	apply(t, st, one)
	equal(t, "by revision", []events.Outcome{first, second}, must(st.Outcomes(ctx, "p", "c1"))(t))
	equal(t, "another id", []events.Outcome{third}, must(st.Outcomes(ctx, "p", "c2"))(t))
	equal(t, "unknown", 0, len(must(st.Outcomes(ctx, "p", "C1"))(t)))
	equal(t, "another project", 0, len(must(st.Outcomes(ctx, "q", "c1"))(t)))
	apply(t, st, effect(ana, 3, func(e *events.EffectCommitted) {
		e.CommittedAt = time.Now().Add(-8 * 24 * time.Hour)
		e.Outcomes = []events.Outcome{outcome("old", 3, "x")}
	}))
	equal(t, "kept 7 days", 0, len(must(st.Outcomes(ctx, "p", "old"))(t)))
	for i := range 3 {
		apply(t, st, effect(user(fmt.Sprintf("u%d", i), ""), 1, func(e *events.EffectCommitted) { e.Outcomes = []events.Outcome{outcome("many", 1, "x")} }))
	}
	equal(t, "of several scopes", 3, len(must(st.Outcomes(ctx, "p", "many"))(t)))
}
