package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func testVersions(t *testing.T, s suite) {
	ana := user("ana", "")
	exact := scope.Exactly(ana)
	st := s.open(t)
	ctx := t.Context()
	v1 := fact("f1", 0, "tea")
	v2 := next(v1, "coffee")
	v3 := next(v2, "tea")
	other := fact("f2", 0, "tea")
	apply(t, st, effect(ana, 1, withFacts(v1, other)))
	apply(t, st, effect(ana, 2, func(e *events.EffectCommitted) { e.Facts, e.Versions = []events.Fact{v2}, []events.Fact{v1} }))
	apply(t, st, effect(ana, 3, func(e *events.EffectCommitted) { e.Facts, e.Versions = []events.Fact{v3}, []events.Fact{v2} }))

	texts := func(list []store.Fact) (out []string) {
		for _, f := range list {
			out = append(out, memory.AddressOf(f.Fact).String()+" "+f.Text)
		}
		return out
	}
	equal(t, "oldest first", []string{"f1@1 tea", "f1@2 coffee", "f1@3 tea"}, texts(must(st.Versions(ctx, exact, "f1"))(t)))
	for _, v := range []events.Fact{v1, v2, v3} {
		got := must(st.Version(ctx, exact, memory.AddressOf(v)))(t)
		equal(t, "version", v, got.Fact)
		equal(t, "its scope", ana, got.Scope)
	}
	for _, at := range []memory.Address{{ID: "f1", Revision: 4}, {ID: "f1", Revision: 0}, {ID: "f9", Revision: 1}} {
		if _, err := st.Version(ctx, exact, at); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("Version(%v): %v, want ErrNotFound", at, err)
		}
	}
	for _, sel := range []scope.Selector{{Project: "q"}, scope.Under(user("bea", ""))} {
		if _, err := st.Versions(ctx, sel, "f1"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("Versions in %v: %v, want ErrNotFound", sel, err)
		}
		if _, err := st.Version(ctx, sel, memory.Address{ID: "f1", Revision: 1}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("Version in %v: %v, want ErrNotFound", sel, err)
		}
	}
	equal(t, "by hash", []string{"f1@1 tea", "f1@3 tea", "f2@1 tea"}, texts(must(st.FactsByHash(ctx, ana, []string{v1.Hash, "no such"}))(t)))
	equal(t, "by predicate", []string{"f1@1 tea", "f1@2 coffee", "f1@3 tea", "f2@1 tea"}, texts(must(st.FactsByPredicate(ctx, ana, "Ana", "LIKES"))(t)))
	testTriples(t, st)
	equal(t, "another predicate", 0, len(must(st.FactsByPredicate(ctx, ana, "ana", "LIKES"))(t)))
	equal(t, "another scope", 0, len(must(st.FactsByHash(ctx, user("bea", ""), []string{v1.Hash}))(t)))

	byID := must(st.FactsByID(ctx, ana, []string{"f2", "f1", "f9"}))(t)
	slices.SortFunc(byID, func(a, b store.Fact) int { return len(a.Text) - len(b.Text) })
	equal(t, "by id", 2, len(byID))
	equal(t, "by id elsewhere", 0, len(must(st.FactsByID(ctx, user("bea", ""), []string{"f1"}))(t)))
}

func likes(object string) events.Triple {
	return events.Triple{Subject: "Ana", Predicate: "LIKES", Object: object}
}

func addresses(list []store.Fact) (out []string) {
	for _, f := range list {
		out = append(out, memory.AddressOf(f.Fact).String())
	}
	return out
}

// testTriples checks that facts with another object are left out, even if there are
// many.
func testTriples(t *testing.T, st store.Store) {
	t.Helper()
	cleo := user("cleo", "")
	var all []events.Fact
	for n := range 50 {
		all = append(all, fact(fmt.Sprintf("t%02d", n), n, fmt.Sprintf("tea number %d", n)))
	}
	single, article, other := fact("u1", 50, "milk"), fact("u2", 51, "The Tea."), fact("u3", 52, "tea")
	single.Cardinality, other.Predicate = events.One, "DISLIKES"
	green := next(article, "green tea")
	apply(t, st, effect(cleo, 1, withFacts(append(all, single, article, other)...)))
	apply(t, st, effect(cleo, 2, func(e *events.EffectCommitted) { e.Facts, e.Versions = []events.Fact{green}, []events.Fact{article} }))
	for object, want := range map[string][]string{
		"tea": {"u1@1", "u2@1"}, "a green tea": {"u1@1", "u2@2"}, "Tea number 7": {"t07@1", "u1@1"}, "": {"u1@1"},
	} {
		equal(t, "by triple "+object, want, addresses(must(st.FactsByTriple(t.Context(), cleo, []events.Triple{likes(object)}))(t)))
	}
	several := []events.Triple{likes("tea number 3"), likes("tea number 4"), likes("water"), likes("tea number 3"), {Subject: "Ana", Predicate: "DISLIKES", Object: "tea"}}
	equal(t, "by triples", []string{"t03@1", "t04@1", "u1@1", "u3@1"}, addresses(must(st.FactsByTriple(t.Context(), cleo, several))(t)))
	equal(t, "by none", 0, len(must(st.FactsByTriple(t.Context(), cleo, nil))(t)))
	equal(t, "by triple elsewhere", 0, len(must(st.FactsByTriple(t.Context(), user("bea", ""), several))(t)))
}

func testFacts(t *testing.T, s suite) {
	ana := user("ana", "")
	t.Run("order and pages", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		var want []string
		for u := range 5 {
			sc := user(fmt.Sprintf("u%d", u), "")
			var facts []events.Fact
			for i := range 8 {
				facts = append(facts, fact(fmt.Sprintf("f%d-%d", i, u), i/3, "text"))
			}
			apply(t, st, effect(sc, 1, withFacts(facts...)))
		}
		sel := scope.Selector{Project: "p"}
		whole := must(st.Facts(t.Context(), sel, store.FactQuery{Limit: 1000}))(t)
		equal(t, "all", 40, len(whole))
		if !slices.IsSortedFunc(whole, func(a, b store.Fact) int {
			if n := b.CreatedAt.Compare(a.CreatedAt); n != 0 {
				return n
			}
			if a.ID > b.ID {
				return -1
			}
			return 1
		}) {
			t.Errorf("order: %v", factIDs(whole))
		}
		want = factIDs(whole)
		for _, size := range []int{1, 3, 39, 40} {
			var got []string
			q := store.FactQuery{Limit: size}
			for {
				page := must(st.Facts(t.Context(), sel, q))(t)
				if len(page) == 0 {
					break
				}
				got = append(got, factIDs(page)...)
				last := page[len(page)-1]
				q.Cursor = &store.FactCursor{CreatedAt: last.CreatedAt, ID: last.ID}
			}
			equal(t, fmt.Sprintf("pages of %d", size), want, got)
		}
		if _, err := st.Facts(t.Context(), sel, store.FactQuery{}); err == nil {
			t.Error("no limit was taken")
		}
	})
	t.Run("narrowed", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		var facts []events.Fact
		for i := range 40 {
			f := fact(fmt.Sprintf("f%02d", i), i, "text")
			f.SessionIDs = []string{"all", fmt.Sprintf("s%d", i%2)}
			f.Kind = []events.FactKind{events.FactSemantic, events.FactOpinion, events.FactSummary}[i%3]
			if i%5 == 0 {
				until := epoch.Add(time.Hour)
				f.ValidUntil = &until
			}
			if i%7 == 0 {
				f.ArchivedAt = &f.UpdatedAt
			}
			facts = append(facts, f)
		}
		apply(t, st, effect(ana, 1, withFacts(facts...)))
		for _, session := range []*string{nil, pointer("all"), pointer("s1"), pointer("none")} {
			for _, kinds := range [][]events.FactKind{nil, {events.FactOpinion}, {events.FactOpinion, events.FactSummary}} {
				for _, at := range []time.Time{{}, epoch.Add(10 * time.Minute), epoch.Add(time.Hour - 1), epoch.Add(time.Hour)} {
					for _, archived := range []bool{false, true} {
						q := store.FactQuery{Session: session, Kinds: kinds, ValidAt: at, IncludeArchived: archived, Limit: 5}
						var want []string
						for _, f := range slices.Backward(facts) {
							if session != nil && !slices.Contains(f.SessionIDs, *session) || kinds != nil && !slices.Contains(kinds, f.Kind) ||
								!at.IsZero() && !memory.ValidAt(f, at) || !archived && f.ArchivedAt != nil || len(want) == q.Limit {
								continue
							}
							want = append(want, f.ID)
						}
						equal(t, fmt.Sprintf("%+v", q), want, factIDs(must(st.Facts(t.Context(), scope.Exactly(ana), q))(t)))
					}
				}
			}
		}
		moved := facts[1]
		moved.SessionIDs = []string{"s9"}
		apply(t, st, effect(ana, 2, withFacts(moved)))
		equal(t, "of the new session", []string{"f01"}, factIDs(must(st.Facts(t.Context(), scope.Exactly(ana), store.FactQuery{Session: pointer("s9"), Limit: 9}))(t)))
		equal(t, "of the old", 39, len(must(st.Facts(t.Context(), scope.Exactly(ana), store.FactQuery{Session: pointer("all"), IncludeArchived: true, Limit: 1000}))(t)))
	})
	t.Run("widening", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		var all []scope.Scope
		for _, sc := range []scope.Scope{
			{Project: "p", User: "ana"}, {Project: "p", User: "ana", Agent: "bot"}, {Project: "p", User: "bea"}, {Project: "p", Agent: "bot"},
			{Project: "p", Session: "s"}, {Project: "p", Agent: "bot", Session: "s"}, {Project: "q", User: "ana"},
		} {
			all = append(all, sc)
			apply(t, st, effect(sc, 1, withFacts(fact("f-"+sc.String(), len(all), "text"))))
		}
		levels := []*string{nil, pointer(""), pointer("ana"), pointer("bot"), pointer("s")}
		for _, u := range levels {
			for _, a := range levels {
				for _, x := range levels {
					sel := scope.Selector{Project: "p", User: u, Agent: a, Session: x}
					var want []string
					for _, sc := range slices.Backward(all) {
						if sel.Match(sc) {
							want = append(want, "f-"+sc.String())
						}
					}
					equal(t, sel.String(), want, factIDs(must(st.Facts(t.Context(), sel, store.FactQuery{Limit: 100}))(t)))
					for _, sc := range all {
						_, err := st.Fact(t.Context(), sel, "f-"+sc.String())
						if found := err == nil; found != sel.Match(sc) {
							t.Errorf("Fact of %v within %v: %v", sc, sel, err)
						}
					}
				}
			}
		}
	})
}

// testEarlierVersions lists facts at instants of the past.
func testEarlierVersions(t *testing.T, s suite) {
	st := s.open(t)
	ana := user("ana", "")
	minute := func(n int) time.Time { return epoch.Add(time.Duration(n) * time.Minute) }
	var newest, all []events.Fact
	for i := range 30 {
		f := fact(fmt.Sprintf("f%02d", i), i, "first")
		f.SessionIDs, f.Kind = []string{"s1"}, events.FactSemantic
		e := effect(ana, uint64(len(all)+1), withFacts(f))
		apply(t, st, e)
		all = append(all, f)
		// Every third fact is restated at 100 and, of those, every other at 200.
		for n := 1; i%3 == 0 && n <= 2 && (n == 1 || i%2 == 0); n++ {
			past := f
			until := minute(100 * n)
			past.ValidUntil = &until
			all[len(all)-1] = past
			f = next(f, fmt.Sprintf("version %d", n))
			f.ValidFrom, f.SessionIDs = until, []string{"s2"}
			if n == 2 {
				f.Kind = events.FactOpinion
			}
			apply(t, st, effect(ana, uint64(len(all)+1), func(e *events.EffectCommitted) { e.Facts, e.Versions = []events.Fact{f}, []events.Fact{past} }))
			all = append(all, f)
		}
		newest = append(newest, f)
	}
	apply(t, st, effect(user("bea", ""), 1, withFacts(fact("f00", 0, "another's"))))
	for _, at := range []time.Time{minute(-1), minute(5), minute(99), minute(100), minute(150), minute(200), minute(500)} {
		for _, session := range []*string{nil, pointer("s1"), pointer("s2")} {
			for _, kinds := range [][]events.FactKind{nil, {events.FactOpinion}} {
				for _, earlier := range []bool{false, true} {
					q := store.FactQuery{ValidAt: at, Session: session, Kinds: kinds, Earlier: earlier, Limit: 4}
					var want []string
					for _, f := range slices.Backward(newest) {
						for _, v := range all {
							if v.ID == f.ID && memory.ValidAt(v, at) && (session == nil || slices.Contains(v.SessionIDs, *session)) &&
								(kinds == nil || slices.Contains(kinds, v.Kind)) && (!earlier || v.Revision < f.Revision) {
								want = append(want, memory.AddressOf(v).String()+" "+v.Text)
							}
						}
					}
					var got []string
					for {
						page := must(st.Facts(t.Context(), scope.Exactly(ana), q))(t)
						for _, f := range page {
							got = append(got, memory.AddressOf(f.Fact).String()+" "+f.Text)
						}
						if len(page) < q.Limit {
							break
						}
						last := page[len(page)-1]
						q.Cursor = &store.FactCursor{CreatedAt: last.CreatedAt, ID: last.ID}
					}
					equal(t, fmt.Sprintf("at %v, session %v, kinds %v, earlier %v", at.Sub(epoch), session, kinds, earlier), want, got)
				}
			}
		}
	}
}
