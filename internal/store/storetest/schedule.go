package storetest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func testSchedule(t *testing.T, s suite) {
	t.Run("pending", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		equal(t, "empty", none[string](), pending(t, st, "turn"))
		for _, u := range []string{"b", "a", "c"} {
			say(t, st, user(u, "s"), 3)
		}
		q := user("z", "")
		q.Project = "a-project"
		say(t, st, q, 1)
		a, b, c := user("a", ""), user("b", ""), user("c", "")
		all := []string{q.String(), a.String(), b.String(), c.String()}
		equal(t, "watched before", all, pending(t, st, "turn"))
		equal(t, "never asked for", all, pending(t, st, "sleep"))

		apply(t, st, effect(a, 1, covering("turn", 0, 3)))
		apply(t, st, effect(b, 1, covering("turn", 0, 2)))
		apply(t, st, effect(c, 1, covering("later", 0, 3)))
		equal(t, "one is covered", []string{q.String(), b.String(), c.String()}, pending(t, st, "turn"))
		equal(t, "another rule's", all, pending(t, st, "sleep"))
		equal(t, "first asked after its watermark", []string{q.String(), a.String(), b.String()}, pending(t, st, "later"))

		apply(t, st, effect(b, 2, covering("turn", 2, 3)))
		equal(t, "both are covered", []string{q.String(), c.String()}, pending(t, st, "turn"))
		put(t, st, episode(user("a", "s"), "more", 9, "x"))
		put(t, st, episode(user("a", "s"), "more", 9, "x"))
		equal(t, "pending again", []string{q.String(), a.String(), c.String()}, pending(t, st, "turn"))
		equal(t, "for every rule", []string{q.String(), a.String(), b.String()}, pending(t, st, "later"))
	})
	t.Run("state", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		ana := user("ana", "")
		equal(t, "unknown", memory.State{Scope: ana}, must(st.State(t.Context(), ana))(t))
		say(t, st, user("ana", "s"), 5)
		apply(t, st, effect(ana, 1, covering("turn", 0, 2)))
		apply(t, st, effect(ana, 2, covering("sleep", 0, 5)))
		want := memory.State{Scope: ana, LastOrdinal: 5, Revision: 2, AuditSeq: 102, Watermarks: map[string]uint64{"turn": 2, "sleep": 5}}
		equal(t, "state", want, must(st.State(t.Context(), ana))(t))
		got := put(t, st, episode(user("ana", "s"), "e1", 0, "word1 said here"))
		equal(t, "of a put", want, got.State)
		seen := false
		err := st.Pending(t.Context(), "turn", func(state store.Pending) bool {
			seen = true
			equal(t, "pending state", store.Pending{State: want, Unrequested: state.Unrequested}, state)
			return true
		})
		if err != nil || !seen {
			t.Errorf("Pending: %v, seen %v", err, seen)
		}
	})
	t.Run("pending tells claim and end", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		for _, name := range []string{"ana", "bea"} {
			say(t, st, user(name, "s"), 5)
		}
		ana := user("ana", "")
		claim := store.Claim{Range: events.Range{From: 2, To: 5}, At: epoch, Attempt: 3}
		if _, won, err := st.Claim(t.Context(), ana, "turn", store.Claim{}, claim); err != nil || !won {
			t.Fatal(won, err)
		}
		must(st.EndSession(t.Context(), user("ana", "s"), events.SessionEnd{Cause: events.EndIdle, At: epoch}))(t)
		for rule, want := range map[string]store.Claim{"turn": claim, "sleep": {}} {
			got := map[string]store.Pending{}
			must(0, st.Pending(t.Context(), rule, func(p store.Pending) bool {
				got[p.Scope.User] = p
				return true
			}))(t)
			equal(t, "claim of "+rule, want, got["ana"].Claim)
			equal(t, "an end above the watermark", true, got["ana"].Ended)
			equal(t, "no claim", store.Claim{}, got["bea"].Claim)
			equal(t, "no end", false, got["bea"].Ended)
		}
		say(t, st, user("ana", "t"), 7)
		apply(t, st, effect(ana, 1, covering("turn", 0, 5)))
		for rule, want := range map[string]bool{"turn": false, "sleep": true} {
			must(0, st.Pending(t.Context(), rule, func(p store.Pending) bool {
				if p.Scope == ana {
					equal(t, "an end above the watermark of "+rule, want, p.Ended)
				}
				return true
			}))(t)
		}
	})
	t.Run("pages", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		const many = 600
		for i := range many {
			put(t, st, episode(user(fmt.Sprintf("u%d", i), "s"), "e", 0, "x"))
		}
		if n := len(pending(t, st, "turn")); n != many {
			t.Errorf("%d pending, want %d", n, many)
		}
		n := 0
		if err := st.Pending(t.Context(), "turn", func(store.Pending) bool { n++; return n < 7 }); err != nil || n != 7 {
			t.Errorf("stopped after %d, %v", n, err)
		}
		// The callback may use the store.
		err := st.Pending(t.Context(), "turn", func(state store.Pending) bool {
			_, _, err := st.Claim(t.Context(), state.Scope, "turn", store.Claim{}, store.Claim{Range: events.Range{To: 1}, At: epoch})
			return err == nil
		})
		if err != nil {
			t.Error(err)
		}
		claimed := 0
		must(0, st.Pending(t.Context(), "turn", func(state store.Pending) bool {
			if state.Claim.Range.To == 1 {
				claimed++
			}
			return true
		}))(t)
		if claimed != many {
			t.Errorf("%d claims, want %d", claimed, many)
		}
	})
	t.Run("due holds", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		ana, q := user("ana", ""), user("zoe", "")
		q.Project = "a-project"
		held := func(id string, minute int) events.Hold {
			due := epoch.Add(time.Duration(minute) * time.Minute)
			return events.Hold{ID: id, HeldAt: epoch, Why: "churn", FactID: "f1", Due: &due}
		}
		due := func(minute int) (ids []string) {
			t.Helper()
			err := st.DueHolds(t.Context(), epoch.Add(time.Duration(minute)*time.Minute), func(h store.DueHold) bool {
				ids = append(ids, h.Scope.Project+" "+h.ID)
				return true
			})
			if err != nil {
				t.Fatal(err)
			}
			return ids
		}
		equal(t, "empty", none[string](), due(100))
		apply(t, st, effect(ana, 1, func(e *events.EffectCommitted) {
			e.Holds = []events.Hold{held("h1", 60), held("h2", 30), {ID: "never", HeldAt: epoch, Why: "hedged"}}
		}))
		apply(t, st, effect(q, 1, func(e *events.EffectCommitted) { e.Holds = []events.Hold{held("h1", 45)} }))
		equal(t, "none yet", none[string](), due(29))
		equal(t, "at its time", []string{"p h2"}, due(30))
		equal(t, "all", []string{"p h2", "a-project h1", "p h1"}, due(100))
		n := 0
		if err := st.DueHolds(t.Context(), epoch.Add(time.Hour), func(store.DueHold) bool { n++; return n < 2 }); err != nil || n != 2 {
			t.Errorf("stopped after %d, %v", n, err)
		}
		apply(t, st, effect(ana, 2, func(e *events.EffectCommitted) {
			e.Holds, e.Released = []events.Hold{held("h2", 90)}, []string{"h1"}
		}))
		equal(t, "held again, released", []string{"a-project h1"}, due(60))
		apply(t, st, effect(user("many", ""), 1, func(e *events.EffectCommitted) {
			for i := range 600 {
				e.Holds = append(e.Holds, held(fmt.Sprintf("m%d", i), 200))
			}
		}))
		equal(t, "pages", 602, len(due(200)))
	})
	t.Run("fires", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		if at := must(st.LastFire(t.Context(), "sleep"))(t); !at.IsZero() {
			t.Errorf("never fired, but at %v", at)
		}
		for _, at := range []time.Time{epoch, epoch.Add(time.Hour), epoch.Add(time.Minute)} {
			if err := st.SetLastFire(t.Context(), "sleep", at); err != nil {
				t.Fatal(err)
			}
		}
		if at := must(st.LastFire(t.Context(), "sleep"))(t); !at.Equal(epoch.Add(time.Hour)) {
			t.Errorf("last fire = %v, must not move back", at)
		}
		if at := must(st.LastFire(t.Context(), "turn"))(t); !at.IsZero() {
			t.Errorf("another rule fired at %v", at)
		}
	})
}

func testClaims(t *testing.T, s suite) {
	ana := user("ana", "")
	first := store.Claim{Range: events.Range{From: 0, To: 3}, At: epoch}
	t.Run("compare and set", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		ctx := t.Context()
		equal(t, "none", store.Claim{}, must(st.Look(ctx, ana))(t).Claims["turn"])
		claim := func(what string, expect, next, want store.Claim, won bool) {
			t.Helper()
			got, mine, err := st.Claim(ctx, ana, "turn", expect, next)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, what, want, got)
			if mine != won {
				t.Errorf("%s: won = %v", what, mine)
			}
			equal(t, what+", read", want, must(st.Look(ctx, ana))(t).Claims["turn"])
		}
		claim("first", store.Claim{}, first, first, true)
		second := store.Claim{Range: events.Range{From: 3, To: 5}, At: epoch.Add(time.Second), Attempt: 1}
		claim("expects none", store.Claim{}, second, first, false)
		claim("expects the first", first, second, second, true)
		claim("expects the past", first, first, second, false)
		equal(t, "another rule", store.Claim{}, must(st.Look(ctx, ana))(t).Claims["sleep"])
		equal(t, "another scope", store.Claim{}, must(st.Look(ctx, user("bea", "")))(t).Claims["turn"])
	})
	t.Run("race", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		var won atomic.Int32
		var wg sync.WaitGroup
		for i := range 32 {
			wg.Go(func() {
				next := store.Claim{Range: events.Range{To: 1}, At: epoch, Attempt: i + 1}
				if _, mine, err := st.Claim(t.Context(), ana, "turn", store.Claim{}, next); err != nil {
					t.Error(err)
				} else if mine {
					won.Add(1)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Errorf("%d won", won.Load())
		}
	})
	t.Run("advance", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		must(0, st.Advance(t.Context(), ana))(t) // knows nothing
		apply(t, st, effect(ana, 1, covering("turn", 0, 7)))
		say(t, st, user("ana", "s"), 2) // all that the stream still has
		must(0, st.Advance(t.Context(), ana))(t)
		must(0, st.Advance(t.Context(), ana))(t)
		next := put(t, st, episode(user("ana", "s"), "next", 9, "said next"))
		equal(t, "ordinal behind all that is consolidated", uint64(8), next.Episode.Ordinal)
		equal(t, "last ordinal", uint64(8), must(st.State(t.Context(), ana))(t).LastOrdinal)
		var pending []uint64
		must(0, st.Pending(t.Context(), "turn", func(state store.Pending) bool {
			pending = append(pending, state.LastOrdinal)
			return true
		}))(t)
		equal(t, "pending", []uint64{8}, pending)
	})
	t.Run("committed", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		say(t, st, user("ana", "s"), 5)
		set := func(expect, next store.Claim) {
			if _, won, err := st.Claim(t.Context(), ana, "turn", expect, next); err != nil || !won {
				t.Fatalf("Claim: %v, %v", won, err)
			}
		}
		set(store.Claim{}, first)
		apply(t, st, effect(ana, 1, covering("turn", 0, 3)))
		equal(t, "its row stands", first, must(st.Look(t.Context(), ana))(t).Claims["turn"])
		next := store.Claim{Range: events.Range{From: 3, To: 5}, At: epoch}
		set(first, next)
		equal(t, "the next one", next, must(st.Look(t.Context(), ana))(t).Claims["turn"])
	})
}

func testConcurrency(t *testing.T, s suite) {
	t.Run("readers see whole effects", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		ana := user("ana", "")
		const last = 60
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for ctx.Err() == nil {
					snap, err := st.Snapshot(t.Context(), ana)
					if err != nil {
						t.Error(err)
						return
					}
					if uint64(len(snap.Facts)) != snap.Revision || uint64(len(snap.Edges)) != snap.Revision || snap.Watermarks["turn"] != snap.Revision {
						t.Errorf("torn: revision %d with %d facts, %d edges, watermark %d", snap.Revision, len(snap.Facts), len(snap.Edges), snap.Watermarks["turn"])
						return
					}
				}
			})
		}
		for i := uint64(1); i <= last; i++ {
			apply(t, st, effect(ana, i, func(e *events.EffectCommitted) {
				covering("turn", i-1, i)(e)
				e.Facts = []events.Fact{fact(fmt.Sprintf("f%03d", i), 0, "text")}
				e.Edges = []events.Edge{{ID: fmt.Sprintf("g%03d", i), Type: events.EdgeRelation, ValidFrom: epoch, CreatedAt: epoch}}
			}))
		}
		stop()
		wg.Wait()
	})
	t.Run("one failure fails nobody else", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() {
				sc := user(fmt.Sprintf("u%d", i%8), "s")
				if i%4 == 0 {
					if _, err := st.PutEpisode(ctx, episode(sc, fmt.Sprint(i), i, "x")); err == nil {
						t.Error("a cancelled put was taken")
					}
					if err := st.Apply(t.Context(), effect(sc.Fact(), 9, nil), 1); err == nil {
						t.Error("an effect from the future was taken")
					}
					return
				}
				if _, err := st.PutEpisode(t.Context(), episode(sc, fmt.Sprint(i), i, "x")); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := len(must(st.Recent(t.Context(), scope.Selector{Project: "p"}, store.RecentQuery{Limit: 100}))(t)); n != 48 {
			t.Errorf("%d episodes, want 48", n)
		}
	})
}
