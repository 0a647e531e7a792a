package decidetest

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"palimpsest/internal/decide"
	"palimpsest/pkg/events"
)

// times are behaviours that rest on when things were said.
func times() []row {
	oslo := func(n int, e string) events.Candidate {
		return said(n, e, "user", "lives_in", "Oslo", "The user lives in Oslo.", one)
	}
	bergen := func(n int, e string) events.Candidate {
		return said(n, e, "user", "lives_in", "Bergen", "The user lives in Bergen.", one)
	}
	return []row{
		{"older statement becomes history", func(t *testing.T, s *scene) {
			s.hear(bergen(10, "e1"))
			want(t, s.hear(oslo(5, "e2")), "add contradiction")
			s.knows(7, "The user lives in Oslo.")
			s.knows(10, "The user lives in Bergen.")
		}},
		{"moved back", func(t *testing.T, s *scene) {
			s.hear(oslo(1, "e1"))
			s.hear(bergen(2, "e2"))
			want(t, s.hear(oslo(3, "e3")), "update contradiction")
			s.knows(3, "The user lives in Oslo.")
		}},
		{"read again", func(t *testing.T, s *scene) {
			s.hear(oslo(1, "e1"))
			s.hear(bergen(2, "e2"))
			want(t, s.hear(oslo(1, "e1"), bergen(2, "e2")), "noop duplicate", "noop duplicate")
		}},
		{"forgotten on request does not come back", func(t *testing.T, s *scene) {
			s.hear(said(1, "e1", "user", "likes", "tea", "The user likes tea."))
			id := s.Facts()[0].ID
			s.hear(said(5, "e5", "", "", "", "Forget that.", intent("delete", id)))
			s.knows(5)
			want(t, s.hear(said(1, "e1", "user", "likes", "tea", "The user likes tea.")), "noop duplicate")
			want(t, s.hear(said(1, "e1", "user", "likes", "tea", "Tea is liked by the user.")), "noop duplicate")
			s.knows(5)
		}},
		{"said anew after it was forgotten", func(t *testing.T, s *scene) {
			s.hear(said(1, "e1", "user", "likes", "tea", "The user likes tea."))
			s.hear(said(5, "e5", "", "", "", "Forget that.", intent("delete", s.Facts()[0].ID)))
			want(t, s.hear(said(6, "e6", "user", "likes", "tea", "The user likes tea again.")), "add new")
		}},
		{"older negation leaves a newer fact", func(t *testing.T, s *scene) {
			s.hear(said(5, "e5", "user", "habit", "smokes", "The user smokes."))
			want(t, s.hear(said(4, "e4", "user", "habit", "smokes", "The user no longer smokes.", negated)), "noop negation")
		}},
		{"at one time the order of episodes decides", func(t *testing.T, s *scene) {
			at := day(1)
			batch := []events.Candidate{
				said(1, "e1", "user", "habit", "smokes", "The user smokes."),
				said(2, "e2", "user", "habit", "smokes", "The user no longer smokes.", negated),
				said(3, "e3", "user", "habit", "smokes", "The user smokes."),
			}
			for i := range batch {
				batch[i].EventTime = at
			}
			want(t, s.hear(batch...), "add new", "delete negation", "add new")
			for _, d := range s.hear(batch...) {
				if d.Kind() != events.DeltaNoop {
					t.Errorf("read again: %s %s", d.Kind(), d.Provenance().Reason)
				}
			}
			s.knows(1, "The user smokes.")
		}},
	}
}

// intents are behaviours of what an episode's metadata asks for.
func intents() []row {
	return []row{
		{"noop", func(t *testing.T, s *scene) {
			want(t, s.hear(said(1, "e1", "user", "likes", "tea", "The user likes tea.", intent("noop"))), "noop requested")
		}},
		{"update", func(t *testing.T, s *scene) {
			s.hear(said(1, "e1", "user", "likes", "tea", "The user likes tea."))
			id := s.Facts()[0].ID
			c := said(2, "e2", "", "", "", "The user likes coffee.", intent("update", id))
			want(t, s.hear(c), "update requested")
			f := s.Facts()[0]
			if f.ID != id || f.Object != "coffee" || f.Predicate != "likes" {
				t.Errorf("updated fact %+v, want the id kept and (user, likes, coffee)", f)
			}
			want(t, s.hear(c), "noop duplicate")
		}},
		{"update of several", func(t *testing.T, s *scene) {
			s.hear(said(1, "e1", "user", "likes", "tea", "The user likes tea."), said(1, "e1", "user", "likes", "mate", "The user likes mate."))
			f := s.Facts()
			s.hear(said(2, "e2", "", "", "", "The user likes hot drinks.", intent("update", f[0].ID, f[1].ID)))
			s.knows(2, "The user likes hot drinks.")
		}},
		{"delete", func(t *testing.T, s *scene) {
			s.hear(said(1, "e1", "user", "likes", "tea", "The user likes tea."))
			c := said(2, "e2", "", "", "", "Forget it.", intent("delete", s.Facts()[0].ID))
			want(t, s.hear(c), "delete requested")
			want(t, s.hear(c), "noop requested")
			s.knows(2)
		}},
		{"unknown fact", func(t *testing.T, s *scene) {
			s.hear(said(1, "e1", "user", "likes", "tea", "The user likes tea."))
			_, err := s.try(said(2, "e2", "", "", "", "Forget it.", intent("delete", s.Facts()[0].ID, "nowhere")))
			var conflict *decide.FactConflictError
			if !errors.As(err, &conflict) || len(conflict.Missing) != 1 || len(conflict.Found) != 1 {
				t.Fatalf("error %v, want a FactConflictError with both sides", err)
			}
		}},
		{"update of a deleted fact", func(t *testing.T, s *scene) {
			s.hear(said(1, "e1", "user", "likes", "tea", "The user likes tea."))
			id := s.Facts()[0].ID
			s.hear(said(2, "e2", "", "", "", "Forget it.", intent("delete", id)))
			_, err := s.try(said(3, "e3", "", "", "", "The user likes coffee.", intent("update", id)))
			var conflict *decide.FactConflictError
			if !errors.As(err, &conflict) {
				t.Fatalf("error %v, want a FactConflictError", err)
			}
		}},
		{"without replaces", func(t *testing.T, s *scene) { wantInvalid(t, s, intent("update")) }},
		{"no such intent", func(t *testing.T, s *scene) { wantInvalid(t, s, intent("merge", "x")) }},
	}
}

// illFormed are candidates that end facts in a way that no fact could be found by.
func illFormed() []row {
	ends := retracts
	moves := func(c *events.Candidate) { c.Moves = true }
	corsa := events.Triple{Subject: "user", Object: "Corsa"}
	var rows []row
	for field, with := range map[string][]func(*events.Candidate){
		"retracts":              {ends(slices.Repeat([]events.Triple{corsa}, 65)...)},
		"retracts[0].subject":   {ends(events.Triple{Subject: "us\x00er", Predicate: "drives"})},
		"retracts[0]":           {ends(events.Triple{Subject: "user"})},
		"retracts[1].predicate": {ends(corsa, events.Triple{Subject: "user", Predicate: strings.Repeat("x", 257)})},
		"retracts[1].object":    {ends(corsa, events.Triple{Subject: "user", Predicate: "drives", Object: strings.Repeat("x", 256<<10+1)})},
	} {
		rows = append(rows, row{field, func(t *testing.T, s *scene) {
			_, err := s.try(said(1, "e1", "user", "drives", "Skoda", "The user drives a Skoda.", with...))
			var invalid *decide.InvalidCandidateError
			if !errors.As(err, &invalid) || invalid.Field != field || invalid.Reason == "" {
				t.Fatalf("error %v, want one that names %s", err, field)
			}
		}})
	}
	return append(rows,
		row{"a move that is negated", func(t *testing.T, s *scene) {
			_, err := s.try(said(1, "e1", "user", "drives", "Skoda", "The user drives no Skoda.", ends(corsa), moves, negated))
			var invalid *decide.InvalidCandidateError
			if !errors.As(err, &invalid) || invalid.Field != "moves" {
				t.Fatalf("error %v, want one that names moves", err)
			}
		}},
		row{"a move whose ends all have a predicate", func(t *testing.T, s *scene) { // a stream may hold such a candidate of an earlier rule pack
			s.hear(said(1, "e1", "user", "drives", "Skoda", "The user drives a Skoda.", ends(events.Triple{Subject: "user", Predicate: "drives", Object: "Corsa"}), moves))
			s.knows(2, "The user drives a Skoda.")
		}},
		row{"as many as there may be", func(t *testing.T, s *scene) {
			s.hear(said(1, "e1", "user", "drives", "Skoda", "The user drives a Skoda.", ends(slices.Repeat([]events.Triple{corsa}, 64)...)))
			s.knows(2, "The user drives a Skoda.")
		}},
	)
}

func wantInvalid(t *testing.T, s *scene, with func(*events.Candidate)) {
	t.Helper()
	_, err := s.try(said(1, "e1", "", "", "", "Whatever.", with))
	var invalid *decide.InvalidCandidateError
	if !errors.As(err, &invalid) || invalid.Field != "metadata.intent" {
		t.Fatalf("error %v, want one that names metadata.intent", err)
	}
}
