package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func testDecay(t *testing.T, s suite) {
	ana, bea := user("ana", ""), user("bea", "")
	due := func(t testing.TB, st store.Store, at time.Time, of *scope.Scope) (ids []string) {
		t.Helper()
		found, err := st.Decayed(t.Context(), store.DecayQuery{Scope: of, At: at, Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range found {
			ids = append(ids, d.Scope.User+" "+d.ID)
		}
		slices.Sort(ids)
		return ids
	}
	// later is long after every fact is due.
	later := epoch.AddDate(5, 0, 0)
	t.Run("due facts", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		equal(t, "empty", none[string](), due(t, st, later, nil))
		sure, closed, archived, summary := fact("sure", 0, "a"), fact("closed", 0, "b"), fact("archived", 0, "c"), fact("summary", 0, "d")
		sure.Confirmed, sure.DecayRate, sure.Confidence = true, 0, 1
		summary.DecayRate = 0
		end := epoch.Add(time.Hour)
		closed.ValidUntil, archived.ArchivedAt = &end, &end
		weak := fact("weak", 0, "e")
		weak.Confidence = 0.04
		apply(t, st, effect(ana, 1, withFacts(fact("f1", 0, "tea"), weak, sure, closed, archived, summary)))
		apply(t, st, effect(bea, 1, withFacts(fact("f1", 0, "tea"))))
		equal(t, "at the beginning", []string{"ana weak"}, due(t, st, epoch, nil))
		equal(t, "in the end", []string{"ana f1", "ana weak", "bea f1"}, due(t, st, later, nil))
		equal(t, "of one scope", []string{"bea f1"}, due(t, st, later, &bea))
		found := must(st.Decayed(t.Context(), store.DecayQuery{At: later, Limit: 2}))(t)
		equal(t, "of a limit", 2, len(found))
		for offset, want := range []int{2, 2, 1, 0} {
			equal(t, "behind an offset", want, len(must(st.Decayed(t.Context(), store.DecayQuery{At: later, Offset: offset, Limit: 2}))(t)))
		}
		rest := must(st.Decayed(t.Context(), store.DecayQuery{At: later, Offset: 2, Limit: 2}))(t)
		if slices.Contains(found, rest[0]) {
			t.Errorf("%+v again behind %+v", rest, found)
		}
		if _, err := st.Decayed(t.Context(), store.DecayQuery{At: later}); err == nil {
			t.Error("no limit is accepted")
		}

		gone := weak
		gone.Revision, gone.ValidUntil = 2, &end
		apply(t, st, effect(ana, 2, withFacts(gone)))
		equal(t, "once it is closed", none[string](), due(t, st, epoch.AddDate(0, 0, 1), nil))
		back := gone
		back.Revision, back.ValidUntil, back.UpdatedAt = 3, nil, epoch.AddDate(1, 0, 0)
		back.RestoredAt, back.OwnEnd = &back.UpdatedAt, &end
		apply(t, st, effect(ana, 3, withFacts(back)))
		if ids := due(t, st, back.UpdatedAt.AddDate(0, 0, 7), &ana); slices.Contains(ids, "ana weak") {
			t.Error("a week after it was reopened a fact is due")
		}
		if f := must(st.Fact(t.Context(), scope.Exactly(ana), "weak"))(t); !f.LastAccessed.Equal(back.UpdatedAt) {
			t.Errorf("reopened at %v, last accessed %v", back.UpdatedAt, f.LastAccessed)
		} else if f.RestoredAt == nil || !f.RestoredAt.Equal(back.UpdatedAt) || f.OwnEnd == nil || !f.OwnEnd.Equal(end) {
			t.Errorf("restored at %v, with an end of its own %v", f.RestoredAt, f.OwnEnd)
		}
	})
	t.Run("entities without a summary", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		entity := func(id string, mentions uint64, hours int, summary string) events.Entity {
			return events.Entity{
				ID: id, CanonicalName: "name " + id, Type: events.EntityPerson, MentionCount: mentions, Summary: summary,
				FirstSeen: epoch, LastUpdated: epoch.Add(time.Duration(hours) * time.Hour),
			}
		}
		with := func(list ...events.Entity) func(*events.EffectCommitted) {
			return func(e *events.EffectCommitted) { e.Entities = list }
		}
		due := func(at time.Time, of *scope.Scope) (ids []string) {
			for _, d := range must(st.Undescribed(t.Context(), store.DecayQuery{Scope: of, At: at, Limit: 1000}))(t) {
				ids = append(ids, d.Scope.User+" "+d.ID)
			}
			slices.Sort(ids)
			return ids
		}
		equal(t, "empty", none[string](), due(later, nil))
		me := entity("me", 30, 0, "")
		me.CanonicalName = memory.SubjectUser
		apply(t, st, effect(ana, 1, with(entity("often", 3, 1, ""), entity("twice", 2, 1, ""), entity("told", 9, 1, "It is told."), me)))
		apply(t, st, effect(bea, 1, with(entity("often", 4, 5, ""))))
		equal(t, "before their last mention", none[string](), due(epoch, nil))
		equal(t, "between", []string{"ana often"}, due(epoch.Add(2*time.Hour), nil))
		equal(t, "in the end", []string{"ana often", "bea often"}, due(later, nil))
		equal(t, "of one scope", []string{"bea often"}, due(later, &bea))
		equal(t, "of a limit", 1, len(must(st.Undescribed(t.Context(), store.DecayQuery{At: later, Limit: 1}))(t)))
		equal(t, "behind an offset", 1, len(must(st.Undescribed(t.Context(), store.DecayQuery{At: later, Offset: 1, Limit: 9}))(t)))
		if _, err := st.Undescribed(t.Context(), store.DecayQuery{At: later}); err == nil {
			t.Error("no limit is accepted")
		}
		equal(t, "facts are none of them", none[string](), func() (ids []string) {
			for _, d := range must(st.Decayed(t.Context(), store.DecayQuery{At: later, Limit: 9}))(t) {
				ids = append(ids, d.ID)
			}
			return ids
		}())
		apply(t, st, effect(ana, 2, with(entity("often", 3, 1, "It is often mentioned."), entity("twice", 3, 2, ""))))
		equal(t, "once it has its summary", []string{"ana twice"}, due(later, &ana))
		apply(t, st, effect(ana, 3, with(entity("often", 3, 1, ""))))
		equal(t, "once that was taken away", []string{"ana often", "ana twice"}, due(later, &ana))

		byID := must(st.EntitiesByID(t.Context(), ana, []string{"often", "told", "ofte", "nobody"}))(t)
		slices.SortFunc(byID, func(a, b events.Entity) int { return strings.Compare(a.ID, b.ID) })
		equal(t, "by id", []events.Entity{entity("often", 3, 1, ""), entity("told", 9, 1, "It is told.")}, byID)
		equal(t, "of another scope", 0, len(must(st.EntitiesByID(t.Context(), bea, []string{"told"}))(t)))
		equal(t, "no id", 0, len(must(st.EntitiesByID(t.Context(), ana, nil))(t)))
	})
	t.Run("facts that are put back are not due for that", func(t *testing.T) {
		t.Parallel()
		if s.opts.PutBack == nil {
			t.Skip("another run of the suite opens such a store")
		}
		back := epoch.AddDate(1, 0, 0)
		st := s.opts.PutBack(t, back)
		young := fact("young", 0, "rum")
		young.CreatedAt = back.Add(time.Minute)
		apply(t, st, effect(ana, 1, withFacts(fact("f1", 0, "tea"), young)))
		equal(t, "a week later", none[string](), due(t, st, back.AddDate(0, 0, 7), nil))
		equal(t, "in the end", []string{"ana f1", "ana young"}, due(t, st, later, nil))
		for id, want := range map[string]time.Time{"f1": back, "young": young.CreatedAt} {
			if f := must(st.Fact(t.Context(), scope.Exactly(ana), id))(t); !f.LastAccessed.Equal(want) || f.AccessCount != 0 || !f.CreatedAt.Before(back.Add(time.Hour)) {
				t.Errorf("%s was last accessed at %v, want %v; %d accesses", id, f.LastAccessed, want, f.AccessCount)
			}
		}
	})
	t.Run("reopened facts stay", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		apply(t, st, effect(ana, 1, withFacts(fact("pruned", 0, "tea"), fact("archived", 0, "rum"))))
		read := epoch.AddDate(1, 0, 0) // long after they were due: the read adds little
		for range 2 {
			if err := st.Touch(t.Context(), ana, []string{"pruned", "archived"}, read); err != nil {
				t.Fatal(err)
			}
		}
		end := read.Add(time.Hour)
		pruned, archived := fact("pruned", 0, "tea"), fact("archived", 0, "rum")
		pruned.Revision, pruned.ValidUntil = 2, &end
		archived.Revision, archived.ArchivedAt = 2, &end
		apply(t, st, effect(ana, 2, withFacts(pruned, archived)))
		back := end.AddDate(0, 3, 0)
		pruned.Revision, pruned.ValidUntil, pruned.UpdatedAt = 3, nil, back
		archived.Revision, archived.ArchivedAt, archived.UpdatedAt = 3, nil, back
		apply(t, st, effect(ana, 3, withFacts(pruned, archived)))
		equal(t, "a month after the restore", none[string](), due(t, st, back.AddDate(0, 1, 0), &ana))
	})
	t.Run("a fact is due at the predicted moment", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		run := 0
		rapid.Check(t, func(rt *rapid.T) {
			run++
			one := user(fmt.Sprintf("u%d", run), "")
			f := fact("f", 0, "tea")
			f.Confidence = rapid.Float64Range(0.06, 1).Draw(rt, "confidence")
			f.DecayRate = rapid.Float64Range(0.05, 2).Draw(rt, "rate")
			if err := st.Apply(t.Context(), effect(one, 1, withFacts(f)), 1); err != nil {
				rt.Fatal(err)
			}
			strength, last := f.Confidence, f.CreatedAt
			if rapid.Bool().Draw(rt, "read") {
				at := last.Add(time.Duration(rapid.Int64Range(0, int64(10*24*time.Hour)).Draw(rt, "after")))
				if err := st.Touch(t.Context(), one, []string{"f"}, at); err != nil {
					rt.Fatal(err)
				}
				strength = memory.Reinforce(strength, f.DecayRate, last, at, 1)
				last = at.Truncate(time.Microsecond)
			}
			at, ok := memory.PruneAt(strength, f.DecayRate, memory.DefaultDecayThreshold, last)
			if !ok {
				rt.Skip("never")
			}
			// A moment before, its confidence is above the threshold, and a moment after not.
			const moment = 2 * time.Microsecond
			if ids := due(t, st, at.Add(-moment), &one); len(ids) > 0 {
				rt.Fatalf("due before %v", at)
			}
			if ids := due(t, st, at.Add(moment), &one); len(ids) != 1 {
				rt.Fatalf("not due after %v", at)
			}
			if c := memory.Confidence(strength, f.DecayRate, last, at.Add(-time.Second)); at.After(last) && c < memory.DefaultDecayThreshold-1e-6 {
				rt.Fatalf("confidence %g a second before", c)
			}
			got, err := st.Fact(t.Context(), scope.Exactly(one), "f")
			if err != nil || got.DueBy(at.Add(-moment)) || !got.DueBy(at.Add(moment)) {
				rt.Fatalf("the fact itself: %+v, %v", got, err)
			}
		})
	})
	t.Run("none but those", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		for n := range 5 {
			apply(t, st, effect(ana, uint64(n+1), func(e *events.EffectCommitted) {
				for i := range 100 {
					f := fact(fmt.Sprintf("f%d-%d", n, i), i, fmt.Sprintf("text %d %d", n, i))
					if i == 0 {
						f.Confidence = 0.01
					}
					e.Facts = append(e.Facts, f)
				}
			}))
		}
		equal(t, "of 500", 5, len(due(t, st, epoch.Add(time.Hour), nil)))
	})
}
