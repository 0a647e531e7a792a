package storetest

import (
	"strings"
	"testing"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// Marker stands in every text and name of the user that is erased.
const Marker = "zqmarkerzq"

// whom returns the user of that name in the project of the suite.
func whom(user string) memory.Whom {
	return memory.Whom{Project: "p", Is: func(name string) bool { return name == user }}
}

// live fills a store with what a user may have in it.
func live(t *testing.T, st store.Store, owner scope.Scope, text string, dimensions int) {
	t.Helper()
	for i, words := range []string{text + " tea", "more " + text, "and " + text} {
		put(t, st, episode(owner, string(rune('a'+i))+text, i, words))
	}
	apply(t, st, effect(owner.Fact(), 1, func(e *events.EffectCommitted) {
		covering("turn", 0, 2)(e)
		first := fact("f-"+text, 0, text)
		second := next(first, text+" again")
		e.Facts, e.Versions = []events.Fact{second}, []events.Fact{first}
		e.Entities = []events.Entity{{ID: "n-" + text, CanonicalName: text, Type: "PERSON", Aliases: []string{text + "y"}}}
		e.Holds = []events.Hold{{ID: "h-" + text, HeldAt: epoch, Candidate: candidateOf(text)}}
		e.Outcomes = []events.Outcome{{CorrelationID: "c-" + text, Revision: 1, Results: []events.Result{{Memory: text, Event: events.ChangeAdd}}}}
	}))
	embedAll(t, st, func(text string) []float32 { return axis(dimensions, len(text)) })
	put(t, st, episode(owner, "d"+text, 5, text+" without a vector"))
	if err := st.PutCached(t.Context(), owner.Fact(), "k"+text, []byte(text), epoch.AddDate(9, 0, 0)); err != nil {
		t.Fatal(err)
	}
	pending(t, st, "turn")
}

func candidateOf(text string) events.Candidate {
	return events.Candidate{Text: text, Subject: text, Predicate: "LIKES", Object: text}
}

// FillErasure fills a store with a user whose every text holds [Marker], and with
// another one. [CheckErasure] finds what an erasure must leave.
func FillErasure(t *testing.T, st store.Store, dimensions int) {
	t.Helper()
	live(t, st, user(Marker, "s-"+Marker), Marker, dimensions)
	live(t, st, user("ana", "s"), "chess", dimensions)
	live(t, st, scope.Scope{Project: "other", User: Marker}, "go", dimensions)
}

func testErasure(t *testing.T, s suite) {
	if s.opts.Reopen == nil {
		t.Fatal("no Reopen, and no reason in Skip")
	}
	st, ctx := s.open(t), t.Context()
	FillErasure(t, st, s.opts.dimensions())
	ana, other := user("ana", ""), scope.Scope{Project: "other", User: Marker}
	before := map[scope.Scope]memory.Snapshot{}
	for _, owner := range []scope.Scope{ana, other} {
		before[owner] = must(st.Snapshot(ctx, owner))(t)
	}
	eraser, ok := st.(store.Eraser)
	if !ok {
		t.Fatalf("%T is no store.Eraser", st)
	}
	equal(t, "scan", uint64(1), must(eraser.Scan(ctx, whom(Marker)))(t))
	done := must(eraser.Erase(ctx, whom(Marker)))(t)
	equal(t, "counts", []uint64{1, 4, 1}, []uint64{done.Scopes, done.Episodes, done.Facts})
	if done.Rows <= 6 {
		t.Errorf("%d rows are too few for what there was", done.Rows)
	}
	st = s.opts.Reopen(t, st)
	eraser = st.(store.Eraser) //nolint:forcetypeassert // it was one
	equal(t, "scan behind", uint64(0), must(eraser.Scan(ctx, whom(Marker)))(t))
	equal(t, "again", store.Erased{}, must(eraser.Erase(ctx, whom(Marker)))(t))
	st = s.opts.Reopen(t, st)

	gone := user(Marker, "")
	equal(t, "state", memory.State{Scope: gone}, must(st.State(ctx, gone))(t))
	for _, target := range []store.Target{store.Facts, store.Episodes} {
		equal(t, "text", []string(nil), findText(t, st, scope.Selector{Project: "p"}, Marker, target))
	}
	equal(t, "outcomes", []events.Outcome(nil), must(st.Outcomes(ctx, "p", "c-"+Marker))(t))
	equal(t, "cache", []byte(nil), must(st.Cached(ctx, gone, "k"+Marker))(t))
	for owner, want := range before {
		equal(t, owner.String(), want, must(st.Snapshot(ctx, owner))(t))
		equal(t, "episodes", 4, len(must(st.EpisodeRange(ctx, owner, events.Range{To: 9}))(t)))
	}
	equal(t, "text of another", []string{"f-chess"}, findText(t, st, scope.Under(ana), "chess", store.Facts))
	if err := st.Scopes(ctx, scope.Selector{Project: "p"}, func(owner scope.Scope) bool {
		if strings.Contains(owner.String(), Marker) {
			t.Errorf("%s is still there", owner)
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	p := put(t, st, episode(user(Marker, "s"), "anew", 9, "hello"))
	equal(t, "begins anew", uint64(1), p.Episode.Ordinal)
}
