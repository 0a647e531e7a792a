package storetest

import (
	"fmt"
	"strings"
	"testing"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// hostile are identifiers that must be as good as any other: separators,
// wildcards, spellings that fold or normalise to one another, the longest.
var hostile = []string{
	"a", "b", "a/../b", "a/", "/a/", "*", ">", "a.*", "%", "_", "a%", "a_", "%61", "Alice", "alice", "ALICE",
	"caf\u00e9", "cafe\u0301", "🙂", "🙂🙂", "'", `"`, `\`, "a'; DROP TABLE facts; --", "{a}", "@a", "a|b", "-a", " ", " a", "a ",
	"ß", "ss", "İ", "i", "ı", strings.Repeat("x", 256), strings.Repeat("x", 255), "null", "user", "0", "00",
}

func testIsolation(t *testing.T, s suite) {
	levels := map[string]func(id string) scope.Scope{
		"project": func(id string) scope.Scope { return scope.Scope{Project: id, User: "u", Session: "s"} },
		"user":    func(id string) scope.Scope { return scope.Scope{Project: "p", User: id, Session: "s"} },
		"agent":   func(id string) scope.Scope { return scope.Scope{Project: "p", Agent: id} },
		"session": func(id string) scope.Scope { return scope.Scope{Project: "p", User: "u", Session: id} },
		"visitor": func(id string) scope.Scope { return scope.Scope{Project: "p", Session: id} },
	}
	for level, at := range levels {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			st := s.open(t)
			for i, id := range hostile {
				sc := at(id)
				put(t, st, episode(sc, "e", i, fmt.Sprintf("common word%d", i)))
				if level == "session" {
					continue // all sessions of a user share a fact scope
				}
				apply(t, st, effect(sc.Fact(), 1, func(e *events.EffectCommitted) {
					covering("turn", 0, 1)(e)
					e.Facts = []events.Fact{fact("f", i, fmt.Sprintf("common word%d", i))}
					e.Outcomes = []events.Outcome{{CorrelationID: "c", Revision: 1}}
				}))
			}
			embedAll(t, st, func(string) []float32 { return axis(s.opts.dimensions(), 0) })
			for i, id := range hostile {
				sc := at(id)
				seesItself(t, st, sc, i, s.opts.dimensions())
				if level != "session" {
					seesItsFacts(t, st, sc.Fact(), i, s.opts.dimensions())
				}
			}
		})
	}
}

// seesItself holds the reads of episode number i's scope to that one episode.
func seesItself(t *testing.T, st store.Store, sc scope.Scope, i, dimensions int) {
	t.Helper()
	ctx := t.Context()
	sel := scope.Exactly(sc)
	want := []string{fmt.Sprintf("common word%d", i)}
	contents := func(list []memory.Episode) (out []string) {
		for _, e := range list {
			if e.Scope != sc {
				t.Errorf("%v read an episode of %v", sc, e.Scope)
			}
			out = append(out, e.Content)
		}
		return out
	}
	equal(t, "recent", want, contents(must(st.Recent(ctx, sel, store.RecentQuery{Limit: 1000}))(t)))
	equal(t, "by id", want, contents([]memory.Episode{must(st.Episode(ctx, sc, "", "e"))(t)}))
	equal(t, "before", want, contents(must(st.EpisodesBefore(ctx, sc, 1000, 1000))(t)))
	q := store.SearchQuery{Target: store.Episodes, Limit: 1000}
	for _, hits := range [][]store.Hit{must(st.SearchText(ctx, sel, "common", q))(t), must(st.SearchVector(ctx, sel, axis(dimensions, 0), q))(t)} {
		var list []memory.Episode
		for _, h := range hits {
			list = append(list, *h.Episode)
		}
		equal(t, "search", want, contents(list))
	}
}

func seesItsFacts(t *testing.T, st store.Store, sc scope.Scope, i, dimensions int) {
	t.Helper()
	ctx := t.Context()
	sel := scope.Exactly(sc)
	want := []string{fmt.Sprintf("common word%d", i)}
	texts := func(list ...store.Fact) (out []string) {
		for _, f := range list {
			if f.Scope != sc {
				t.Errorf("%v read a fact of %v", sc, f.Scope)
			}
			out = append(out, f.Text)
		}
		return out
	}
	equal(t, "fact", want, texts(must(st.Fact(ctx, sel, "f"))(t)))
	equal(t, "facts", want, texts(must(st.Facts(ctx, sel, store.FactQuery{Limit: 1000}))(t)...))
	equal(t, "by id", want, texts(must(st.FactsByID(ctx, sc, []string{"f"}))(t)...))
	equal(t, "by predicate", want, texts(must(st.FactsByPredicate(ctx, sc, "Ana", "LIKES"))(t)...))
	q := store.SearchQuery{Target: store.Facts, Limit: 1000}
	for _, hits := range [][]store.Hit{must(st.SearchText(ctx, sel, "common", q))(t), must(st.SearchVector(ctx, sel, axis(dimensions, 0), q))(t)} {
		var list []store.Fact
		for _, h := range hits {
			list = append(list, *h.Fact)
		}
		equal(t, "search", want, texts(list...))
	}
	equal(t, "state", memory.State{Scope: sc, LastOrdinal: 1, Revision: 1, AuditSeq: 101, Watermarks: map[string]uint64{"turn": 1}}, must(st.State(ctx, sc))(t))
	equal(t, "scopes", []string{sc.String()}, scopes(t, st, sel))
	if n := len(must(st.Outcomes(ctx, sc.Project, "c"))(t)); n < 1 {
		t.Errorf("%d outcomes", n)
	}
}
