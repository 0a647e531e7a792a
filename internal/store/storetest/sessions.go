package storetest

import (
	"fmt"
	"testing"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func open(t *testing.T, st store.Store, fact scope.Scope) []memory.Session {
	t.Helper()
	return must(st.OpenSessions(t.Context(), fact))(t)
}

func testSessions(t *testing.T, s suite) {
	ana := user("ana", "")
	t.Run("registry", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		put(t, st, episode(user("ana", "s"), "1", 0, "x"))
		put(t, st, episode(user("ana", "t"), "1", 5, "x"))
		put(t, st, episode(user("ana", "s"), "2", 9, "x"))
		put(t, st, episode(user("ana", ""), "3", 9, "no session"))
		put(t, st, episode(user("bea", "s"), "1", 0, "x"))
		equal(t, "sessions", []memory.Session{
			{Scope: user("ana", "s"), FirstSeen: epoch, LastSeen: epoch.Add(9 * time.Minute), LastOrdinal: 3, Live: true},
			{Scope: user("ana", "t"), FirstSeen: epoch.Add(5 * time.Minute), LastSeen: epoch.Add(5 * time.Minute), LastOrdinal: 2, Live: true},
		}, open(t, st, ana))
	})
	t.Run("in order of time", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		// Told in another order than it happened, as by an import.
		for i, said := range []struct {
			user, session string
			minute        int
		}{{"ana", "c", 30}, {"ana", "a", 15}, {"ana", "a", 10}, {"ana", "B/2", 20}, {"ana", "", 1}, {"ana", "c", 90}, {"bea", "a", 5}} {
			put(t, st, episode(user(said.user, said.session), fmt.Sprint(i), said.minute, "x"))
		}
		ana := scope.Under(user("ana", ""))
		sessions := func(sel scope.Selector, q store.SessionQuery) []string {
			var list []string
			for _, full := range must(st.Sessions(t.Context(), sel, q))(t) {
				list = append(list, full.User+" "+full.Session)
			}
			return list
		}
		equal(t, "all", []string{"ana a", "ana B/2", "ana c"}, sessions(ana, store.SessionQuery{Limit: 9}))
		equal(t, "newest first", []string{"ana c", "ana B/2", "ana a"}, sessions(ana, store.SessionQuery{Limit: 9, Newest: true}))
		equal(t, "second and third", []string{"ana B/2", "ana c"}, sessions(ana, store.SessionQuery{Skip: 1, Limit: 2}))
		equal(t, "last but one", []string{"ana B/2"}, sessions(ana, store.SessionQuery{Skip: 1, Limit: 1, Newest: true}))
		equal(t, "beyond the end", none[string](), sessions(ana, store.SessionQuery{Skip: 3, Limit: 1}))
		before := epoch.Add(20 * time.Minute)
		equal(t, "begun before", []string{"ana a"}, sessions(ana, store.SessionQuery{Limit: 9, Newest: true, Before: before}))
		name := "a"
		equal(t, "of any user", []string{"bea a", "ana a"}, sessions(scope.Selector{Project: "p", Session: &name}, store.SessionQuery{Limit: 9}))
		if _, err := st.Sessions(t.Context(), ana, store.SessionQuery{}); err == nil {
			t.Error("limit 0 was taken")
		}
	})
	t.Run("imported", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		imported := func(session, id string) memory.Episode {
			e := episode(user("ana", session), id, 0, "x")
			e.Mode = events.ModeBackfill
			return e
		}
		for i := range 300 {
			put(t, st, imported(fmt.Sprintf("s%d", i), "1"))
		}
		equal(t, "open sessions of an import", 0, len(open(t, st, ana)))
		put(t, st, episode(user("ana", "s7"), "2", 5, "x"))
		put(t, st, imported("s7", "3"))
		equal(t, "one of them goes on", []memory.Session{
			{Scope: user("ana", "s7"), FirstSeen: epoch, LastSeen: epoch.Add(5 * time.Minute), LastOrdinal: 302, Live: true},
		}, open(t, st, ana))
		must(st.EndSession(t.Context(), user("ana", "s7"), events.SessionEnd{Cause: events.EndIdle, At: epoch}))(t)
		equal(t, "ended again", 0, len(open(t, st, ana)))
	})
	t.Run("look", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		looks := func(what string, open int, ended uint64) {
			t.Helper()
			look := must(st.Look(t.Context(), ana))(t)
			equal(t, what+": open", open, look.Open)
			equal(t, what+": ended", ended, look.Ended)
			equal(t, what+": the state", must(st.State(t.Context(), ana))(t), look.State)
		}
		end := func(session string) {
			t.Helper()
			must(st.EndSession(t.Context(), user("ana", session), events.SessionEnd{Cause: events.EndIdle, At: epoch}))(t)
		}
		looks("unknown", 0, 0)
		imported := episode(user("ana", "old"), "0", 0, "x")
		imported.Mode = events.ModeBackfill
		put(t, st, imported)
		looks("an import", 0, 0)
		for i, session := range []string{"s", "t", "s", ""} {
			put(t, st, episode(user("ana", session), fmt.Sprintf("%d", i+1), 0, "x"))
		}
		looks("two sessions", 2, 0)
		end("s")
		end("s")
		looks("one ended", 1, 4)
		end("old")
		looks("what was not live ended", 1, 4)
		put(t, st, episode(user("ana", "s"), "5", 0, "x"))
		looks("it goes on", 2, 4)
		ends := []events.SessionEnd{
			{Session: "t", LastOrdinal: 3, Cause: events.EndIdle, At: epoch}, {Session: "s", LastOrdinal: 6, Cause: events.EndIdle, At: epoch},
		}
		apply(t, st, effect(ana, 1, func(e *events.EffectCommitted) { e.SessionEnds = ends }))
		looks("an effect ended both", 0, 6)
	})
	t.Run("requests", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		above := func(what string, highest uint64) {
			t.Helper()
			if at := must(st.Look(t.Context(), ana))(t).Requested; at != nil && *at < highest {
				t.Errorf("%s: no request above %d, but %d is one", what, *at, highest)
			}
			must(0, st.Pending(t.Context(), "turn", func(p store.Pending) bool {
				if p.Unrequested && highest > p.Watermarks["turn"] {
					t.Errorf("%s: no request above %d, but %d is one", what, p.Watermarks["turn"], highest)
				}
				return true
			}))(t)
		}
		for i, request := range []bool{false, true, false, true} {
			e := episode(user("ana", "s"), fmt.Sprint(i+1), 0, "x")
			e.Request = request
			put(t, st, e)
			above("episode "+e.ID, []uint64{0, 2, 2, 4}[i])
		}
		apply(t, st, effect(ana, 1, covering("turn", 0, 9)))
		must(0, st.Advance(t.Context(), ana))(t)
		put(t, st, episode(user("ana", "s"), "10", 0, "x"))
		above("after a gap", 4)
		e := episode(user("ana", "s"), "11", 0, "x")
		e.Request = true
		put(t, st, e)
		above("a request after a gap", 11)
	})
	t.Run("ends", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		end := events.SessionEnd{Session: "s", Cause: events.EndExplicit, At: epoch.Add(time.Hour)}
		if state := must(st.EndSession(t.Context(), user("ana", "s"), end))(t); state.LastOrdinal != 0 || state.Scope != ana {
			t.Errorf("an unknown session: %+v", state)
		}
		equal(t, "no end of the unknown", none[events.SessionEnd](), must(st.EndsAbove(t.Context(), ana, 0))(t))
		put(t, st, episode(user("ana", "s"), "1", 0, "x"))
		if state := must(st.EndSession(t.Context(), user("ana", "s"), end))(t); state.LastOrdinal != 1 {
			t.Errorf("state = %+v", state)
		}
		again := end
		again.Cause, again.At = events.EndIdle, epoch.Add(2*time.Hour)
		must(st.EndSession(t.Context(), user("ana", "s"), again))(t)
		end.LastOrdinal = 1
		equal(t, "idempotent per ordinal", []events.SessionEnd{end}, must(st.EndsAbove(t.Context(), ana, 0))(t))
		equal(t, "closed", 0, len(open(t, st, ana)))

		put(t, st, episode(user("ana", "s"), "2", 3, "x"))
		if list := open(t, st, ana); len(list) != 1 || !list[0].EndedAt.IsZero() || list[0].EndCause != "" {
			t.Errorf("an episode after the end must open the session: %+v", list)
		}
		late := again
		late.LastOrdinal = 1
		must(st.EndSession(t.Context(), user("ana", "s"), late))(t)
		equal(t, "an end of the past ends nothing", 1, len(open(t, st, ana)))
		again.LastOrdinal = 0
		must(st.EndSession(t.Context(), user("ana", "s"), again))(t)
		again.LastOrdinal = 2
		equal(t, "both ends", []events.SessionEnd{end, again}, must(st.EndsAbove(t.Context(), ana, 0))(t))
		equal(t, "above the first", []events.SessionEnd{again}, must(st.EndsAbove(t.Context(), ana, 1))(t))
		equal(t, "none of others", none[events.SessionEnd](), must(st.EndsAbove(t.Context(), user("bea", ""), 0))(t))
	})
	t.Run("idle", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		idle := func(at time.Time, most int) []string {
			var list []string
			err := st.IdleSessions(t.Context(), at, func(m memory.Session) bool {
				list = append(list, m.Scope.String())
				return len(list) < most
			})
			if err != nil {
				t.Fatal(err)
			}
			return list
		}
		const many = 600
		for i := range many {
			put(t, st, episode(user("ana", fmt.Sprintf("s%d", i)), "e", 0, "x"))
		}
		backfilled := episode(user("ana", "old"), "e", 0, "x")
		backfilled.Mode = events.ModeBackfill
		put(t, st, backfilled)
		put(t, st, episode(user("ana", ""), "e", 0, "x"))
		equal(t, "seen before is exclusive", 0, len(idle(epoch, many+9)))
		equal(t, "all live sessions", many, len(idle(epoch.Add(time.Second), many+9)))
		equal(t, "stops when told", 3, len(idle(epoch.Add(time.Second), 3)))
		live := episode(user("ana", "old"), "f", 0, "x")
		put(t, st, live)
		equal(t, "a live episode makes it live", many+1, len(idle(epoch.Add(time.Second), many+9)))
		must(st.EndSession(t.Context(), user("ana", "old"), events.SessionEnd{Cause: events.EndIdle, At: epoch}))(t)
		equal(t, "an ended one is not idle", many, len(idle(epoch.Add(time.Second), many+9)))
	})
	t.Run("ends of an effect", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		put(t, st, episode(user("ana", "s"), "1", 0, "x"))
		put(t, st, episode(user("ana", "t"), "1", 0, "x"))
		put(t, st, episode(user("ana", "t"), "2", 0, "x"))
		ends := []events.SessionEnd{
			{Session: "s", LastOrdinal: 1, Cause: events.EndIdle, At: epoch}, {Session: "t", LastOrdinal: 2, Cause: events.EndIdle, At: epoch},
		}
		apply(t, st, effect(ana, 1, func(e *events.EffectCommitted) { e.SessionEnds = ends }))
		equal(t, "recorded", ends, must(st.EndsAbove(t.Context(), ana, 0))(t))
		if list := open(t, st, ana); len(list) != 1 || list[0].Scope.Session != "t" {
			t.Errorf("open = %+v, want t alone: it went on after its end", list)
		}
	})
}
