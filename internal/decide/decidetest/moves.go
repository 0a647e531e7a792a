package decidetest

import (
	"testing"

	"palimpsest/pkg/events"
)

// moves are changes that name the old value and no attribute of it.
func moves() []row {
	corsa := said(1, "e1", "user", "drives", "Opel Corsa", "The user drives an Opel Corsa.", one)
	yoga := said(1, "e2", "user", "habit", "go to yoga on Tuesdays", "The user's habit: go to yoga on Tuesdays.")
	return []row{
		{"the fact of the old value", func(t *testing.T, s *scene) {
			s.hear(corsa, yoga)
			want(t, s.hear(moved(2, "e3", "Corsa", "Skoda")), "update contradiction")
			s.knows(2, "The user drives an Skoda.", "The user's habit: go to yoga on Tuesdays.")
		}},
		{"a part of a phrase", func(t *testing.T, s *scene) {
			s.hear(corsa, yoga)
			want(t, s.hear(moved(2, "e3", "yoga", "boxing")), "update contradiction")
			s.knows(2, "The user drives an Opel Corsa.", "The user's habit: go to boxing on Tuesdays.")
		}},
		{"the day of a topic", func(t *testing.T, s *scene) {
			s.hear(corsa, yoga)
			want(t, s.hear(moved(2, "e3", "yoga", "Thursdays")), "update contradiction")
			s.knows(2, "The user drives an Opel Corsa.", "The user's habit: go to yoga on Thursdays.")
		}},
		{"a day of a thing that has none", func(t *testing.T, s *scene) {
			s.hear(corsa)
			want(t, s.hear(moved(2, "e3", "Corsa", "Thursday")), "noop negation")
			s.knows(2, "The user drives an Opel Corsa.")
		}},
		{"the employer of a job", func(t *testing.T, s *scene) {
			s.hear(said(1, "e1", "user", "work", "as a hydrologist at Fenwick Labs", "The user works as a hydrologist at Fenwick Labs.", one))
			want(t, s.hear(moved(2, "e2", "Fenwick", "Tarn")), "update contradiction")
			s.knows(2, "The user works as a hydrologist at Tarn.")
		}},
		{"an unknown old value", func(t *testing.T, s *scene) {
			s.hear(corsa)
			want(t, s.hear(moved(2, "e2", "jokes", "stories")), "noop negation")
			s.knows(2, "The user drives an Opel Corsa.")
		}},
		{"what was, and whom one likes", func(t *testing.T, s *scene) {
			s.hear(
				said(1, "e1", "user", "did", "saw a play in Lyon", "The user saw a play in Lyon."),
				said(1, "e2", "user", "likes", "tea", "The user likes tea."),
				said(1, "e3", "user", "has_sister", "Anna", "The user has a sister named Anna."),
			)
			want(t, s.hear(moved(2, "e4", "Lyon", "Leeds"), moved(2, "e5", "tea", "coffee"), moved(2, "e6", "Anna", "Berit")),
				"noop negation", "noop negation", "noop negation")
		}},
		{"another person's", func(t *testing.T, s *scene) {
			s.hear(said(1, "e1", "Tom", "drives", "Opel Corsa", "Tom drives an Opel Corsa.", one))
			want(t, s.hear(moved(2, "e2", "Corsa", "Skoda")), "noop negation")
		}},
		{"later than what is known", func(t *testing.T, s *scene) {
			s.hear(said(5, "e1", "user", "drives", "Opel Corsa", "The user drives an Opel Corsa.", one))
			want(t, s.hear(moved(2, "e2", "Corsa", "Skoda")), "noop negation")
		}},
		{"an attribute of its own, and no holder", func(t *testing.T, s *scene) {
			c := said(2, "e2", "user", "uses", "Firefox", "The user uses Firefox.", retracts(events.Triple{Subject: "user", Object: "Chrome"}))
			c.Moves = true
			want(t, s.hear(c), "add new")
			s.knows(2, "The user uses Firefox.")
		}},
		{"another attribute than the holder's", func(t *testing.T, s *scene) {
			s.hear(said(1, "e1", "user", "habit", "drink flat whites", "The user's habit: drink flat whites."))
			c := said(2, "e2", "user", "uses", "oat cortados", "The user uses oat cortados.", retracts(events.Triple{Subject: "user", Object: "flat whites"}))
			c.Moves = true
			want(t, s.hear(c), "update contradiction")
			s.knows(2, "The user's habit: drink oat cortados.")
		}},
		{"an end of a value with a successor of another attribute", func(t *testing.T, s *scene) {
			s.hear(yoga)
			c := said(2, "e3", "user", "plays", "padel", "The user plays padel.", retracts(events.Triple{Subject: "user", Object: "yoga"}))
			want(t, s.hear(c), "add new", "delete negation")
			s.knows(2, "The user plays padel.")
		}},
		{"an end alone", func(t *testing.T, s *scene) {
			s.hear(yoga)
			c := said(2, "e3", "user", "", "yoga", "No longer true: yoga.")
			c.Negated = true
			want(t, s.hear(c), "delete negation")
			s.knows(2)
		}},
		{"an end of what another attribute holds", func(t *testing.T, s *scene) {
			s.hear(yoga)
			c := said(2, "e3", "user", "has_pet", "yoga", "The user no longer has yoga.", retracts(events.Triple{Subject: "user", Object: "yoga"}))
			c.Negated = true
			want(t, s.hear(c), "delete negation")
			s.knows(2)
		}},
		{"read again", func(t *testing.T, s *scene) {
			s.hear(corsa)
			c := moved(2, "e3", "Corsa", "Skoda")
			s.hear(c)
			want(t, s.hear(c), "noop negation")
			s.knows(2, "The user drives an Skoda.")
		}},
	}
}
