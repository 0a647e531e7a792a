package decidetest

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"palimpsest/internal/decide"
	"palimpsest/pkg/events"
)

func runLaws(t *testing.T, open func() decide.Decider) {
	t.Run("cutting into batches changes nothing", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(r *rapid.T) {
			all := conversation(r)
			whole, cut := newScene(t, open()), newScene(t, open())
			hear(r, whole, all)
			for rest := all; len(rest) > 0; {
				n := rapid.IntRange(1, len(rest)).Draw(r, "batch")
				hear(r, cut, rest[:n])
				rest = rest[n:]
			}
			clock := cmpopts.IgnoreFields(events.Fact{}, "CreatedAt", "UpdatedAt")
			if diff := cmp.Diff(whole.History(), cut.History(), clock); diff != "" {
				r.Fatalf("one batch and several differ (-one +several):\n%s", diff)
			}
		})
	})
	t.Run("reading again changes nothing", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(r *rapid.T) {
			all := conversation(r)
			s := newScene(t, open())
			hear(r, s, all)
			for _, d := range hear(r, s, all) {
				if d.Kind() != events.DeltaNoop {
					r.Fatalf("%s gives %s %s", d.Provenance().CandidateID, d.Kind(), d.Provenance().Reason)
				}
			}
		})
	})
	t.Run("what is known of other objects changes nothing", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(r *rapid.T) {
			all := conversation(r)
			if rapid.Bool().Draw(r, "flips") {
				for i := range all { // as metadata may declare
					all[i].Cardinality = rapid.SampledFrom([]events.Cardinality{events.One, events.Many}).Draw(r, "cardinality")
				}
			}
			breaker := decide.Breaker{Limit: rapid.IntRange(0, 3).Draw(r, "limit"), Window: 1000 * time.Hour}
			narrow, wide := newScene(t, open()), newScene(t, open())
			narrow.breaker, wide.breaker = breaker, breaker
			wide.lookup = generous{wide.Memory}
			for rest := all; len(rest) > 0; {
				n := rapid.IntRange(1, len(rest)).Draw(r, "batch")
				few, many := hear(r, narrow, rest[:n]), hear(r, wide, rest[:n])
				if diff := cmp.Diff(wireOf(r, many), wireOf(r, few)); diff != "" {
					r.Fatalf("deltas (-all is known +what is asked for):\n%s", diff)
				}
				rest = rest[n:]
			}
			if diff := cmp.Diff(wide.History(), narrow.History()); diff != "" {
				r.Fatalf("(-all is known +what is asked for):\n%s", diff)
			}
		})
	})
	t.Run("the order of independent candidates changes nothing", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(r *rapid.T) {
			first, second := independent(r, 0), independent(r, 100)
			shuffled := rapid.Permutation(second).Draw(r, "order")
			there, back := newScene(t, open()), newScene(t, open())
			for _, s := range []*scene{there, back} {
				hear(r, s, first)
			}
			hear(r, there, second)
			hear(r, back, shuffled)
			if diff := cmp.Diff(there.History(), back.History()); diff != "" {
				r.Fatalf("two orders differ (-as said +shuffled):\n%s", diff)
			}
		})
	})
	t.Run("one value at any instant", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(r *rapid.T) {
			s := newScene(t, open())
			for _, c := range conversation(r) {
				hear(r, s, []events.Candidate{c})
			}
			oneValue(r, s.History())
		})
	})
	t.Run("deltas are valid and have an id of their own", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(r *rapid.T) {
			all := conversation(r)
			deltas := hear(r, newScene(t, open()), all)
			raw, err := json.Marshal(deltas)
			if err != nil {
				r.Fatal(err)
			}
			var back events.Deltas
			if err := json.Unmarshal(raw, &back); err != nil {
				r.Fatal(err)
			}
			ids, decided := map[string]bool{}, map[string]bool{}
			for _, d := range back {
				ids[d.Provenance().ID], decided[d.Provenance().CandidateID] = true, true
			}
			if len(ids) != len(deltas) {
				r.Fatalf("%d ids for %d deltas", len(ids), len(deltas))
			}
			for _, c := range all {
				if !decided[c.ID] {
					r.Fatalf("no delta for candidate %s", c.ID)
				}
			}
		})
	})
}

// generous returns all facts with the subject and predicate of a triple, with any
// object.
type generous struct{ *Memory }

func (g generous) ByTriple(ctx context.Context, ts []events.Triple) ([]events.Fact, error) {
	asked := map[events.Triple]bool{}
	var all []events.Fact
	for _, t := range ts {
		t.Object = ""
		if !asked[t] {
			facts, err := g.ByPredicate(ctx, t.Subject, t.Predicate)
			if err != nil {
				return nil, err
			}
			all = append(all, facts...)
		}
		asked[t] = true
	}
	return all, nil
}

func wireOf(r *rapid.T, deltas events.Deltas) string {
	raw, err := json.Marshal(deltas)
	if err != nil {
		r.Fatal(err)
	}
	return string(raw)
}

func hear(r *rapid.T, s *scene, batch []events.Candidate) events.Deltas {
	d, err := s.try(batch...)
	if err != nil {
		r.Fatalf("Decide: %v", err)
	}
	s.commit(d, batch)
	return d.Deltas
}

// oneValue checks that of the versions of one (subject, predicate) of
// cardinality one no two hold at the same instant.
func oneValue(r *rapid.T, versions []events.Fact) {
	for i, a := range versions {
		for _, b := range versions[i+1:] {
			if a.Cardinality == events.One && a.Predicate == b.Predicate && a.Subject == b.Subject && overlap(a, b) {
				r.Fatalf("%s and %s hold at one time:\n%s", a.Text, b.Text, cmp.Diff(a, b))
			}
		}
	}
}

func overlap(a, b events.Fact) bool {
	end := func(f events.Fact) time.Time {
		if f.ValidUntil == nil {
			return day(1_000_000)
		}
		return *f.ValidUntil
	}
	from, until := a.ValidFrom, end(a)
	if b.ValidFrom.After(from) {
		from = b.ValidFrom
	}
	if end(b).Before(until) {
		until = end(b)
	}
	return from.Before(until)
}

// conversation draws what one user says in a few turns, some of it dated back.
func conversation(r *rapid.T) []events.Candidate {
	n := rapid.IntRange(1, 10).Draw(r, "turns")
	var out []events.Candidate
	for i := range n {
		c := utterance(r, i)
		c.Ordinal = uint64(i + 1)
		c.EventTime = day(rapid.IntRange(0, 6).Draw(r, "said on")) // ties and disorder
		c.ID, c.SessionIDs = fmt.Sprintf("c%d", i), []string{"s1"}
		if rapid.Bool().Draw(r, "dated") {
			from := c.EventTime.AddDate(0, 0, -rapid.IntRange(0, 3).Draw(r, "days ago"))
			c.ValidFrom = &from
		}
		out = append(out, c)
	}
	return out
}

// independent draws what is said of several people, one statement each.
func independent(r *rapid.T, from int) []events.Candidate {
	var out []events.Candidate
	for i, name := range []string{"Anna", "Boris", "Chidi", "Dolores", "Emeka"} {
		if !rapid.Bool().Draw(r, "of "+name) {
			continue
		}
		n := from + i
		place := rapid.SampledFrom([]string{"Oslo", "Bergen", "York"}).Draw(r, "place")
		c := said(n, fmt.Sprintf("e%d", n), name, "lives_in", place, name+" lives in "+place+".", one)
		if rapid.Bool().Draw(r, "a taste") {
			c = said(n, fmt.Sprintf("e%d", n), name, "likes", place, name+" likes "+place+".")
		}
		c.ID, c.EventTime, c.Ordinal, c.SessionIDs = fmt.Sprintf("c%d", n), day(from+rapid.IntRange(0, 6).Draw(r, "said on")), uint64(n+1), []string{"s1"}
		out = append(out, c)
	}
	return out
}

func utterance(r *rapid.T, i int) events.Candidate {
	episode := fmt.Sprintf("e%d", i)
	switch rapid.IntRange(0, 5).Draw(r, "kind") {
	case 0:
		place := rapid.SampledFrom([]string{"Oslo", "Bergen", "Oslo, Norway", "York"}).Draw(r, "place")
		return said(i, episode, "user", "lives_in", place, "The user lives in "+place+".", one)
	case 1:
		thing := rapid.SampledFrom([]string{"tea", "green tea", "coffee"}).Draw(r, "thing")
		return said(i, episode, "user", "likes", thing, "The user likes "+thing+".")
	case 2:
		thing := rapid.SampledFrom([]string{"tea", "coffee", ""}).Draw(r, "thing")
		return said(i, episode, "user", "likes", thing, "The user no longer likes "+thing+".", negated)
	case 3:
		work := rapid.SampledFrom([]string{"as a cook", "at Fenwick", "as a baker at Tarn", "in tech"}).Draw(r, "work")
		return said(i, episode, "user", "work", work, "The user works "+work+".", one)
	}
	if rapid.Bool().Draw(r, "moves") {
		places := []string{"Oslo", "Bergen", "York"}
		k := rapid.IntRange(0, 2).Draw(r, "old")
		return moved(i, episode, places[k], places[(k+1)%3])
	}
	diets := []string{"vegan", "vegetarian", "eats meat"}
	k := rapid.IntRange(0, 2).Draw(r, "diet")
	return said(i, episode, "user", "diet", diets[k], "The user's diet: "+diets[k]+".", retracts(
		events.Triple{Subject: "user", Predicate: "diet", Object: diets[(k+1)%3]},
		events.Triple{Subject: "user", Predicate: "diet", Object: diets[(k+2)%3]}))
}
