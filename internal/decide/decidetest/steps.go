package decidetest

import (
	"testing"

	"palimpsest/pkg/events"
)

// steps are behaviours of the single steps of a decision.
func steps() []row {
	long := "The user keeps a small wooden boat with a red sail in the old harbour near the town"
	return []row{
		{"other words of the same triple", func(t *testing.T, s *scene) {
			s.hear(said(1, "e1", "user", "likes", "Python", "The user likes Python."))
			want(t, s.hear(said(2, "e2", "user", "likes", "python", "Python is liked by the user.")), "noop duplicate")
		}},
		{"same text but for one word", func(t *testing.T, s *scene) {
			s.hear(said(1, "e1", "", "", "", long+" bridge."))
			want(t, s.hear(said(2, "e2", "", "", "", long+".")), "noop duplicate")
		}},
		{"strictly more specific text", func(t *testing.T, s *scene) {
			s.hear(said(1, "e1", "", "", "", long+"."))
			want(t, s.hear(said(2, "e2", "", "", "", long+" bridge.")), "update refinement")
			s.knows(2, long+" bridge.")
		}},
		{"another number in the same words", func(t *testing.T, s *scene) {
			s.hear(said(1, "e1", "", "", "", long+" since 2019."))
			want(t, s.hear(said(2, "e2", "", "", "", long+" since 2021.")), "add new")
		}},
		{"another name in the same words", func(t *testing.T, s *scene) {
			s.hear(said(1, "e1", "", "", "", long+" with Anna."))
			want(t, s.hear(said(2, "e2", "", "", "", long+" with Berit.")), "add new")
		}},
		{"a negation in the same words", func(t *testing.T, s *scene) {
			s.hear(said(1, "e1", "", "", "", long+" today."))
			want(t, s.hear(said(2, "e2", "", "", "", long+" no today.")), "add new")
		}},
		{"another sibling in the same words", func(t *testing.T, s *scene) {
			rest := " keeps a small wooden boat with a red sail in the old harbour near the town."
			s.hear(said(1, "e1", "user's sister", "owns", "a boat", "The user's sister"+rest))
			want(t, s.hear(said(2, "e2", "user's brother", "owns", "a boat", "The user's brother"+rest)), "add new")
		}},
		{"another value among many", func(t *testing.T, s *scene) {
			s.hear(said(1, "e1", "user", "skill", "C", "The user knows C."))
			want(t, s.hear(said(2, "e2", "user", "skill", "C++", "The user knows C++.")), "add new")
		}},
		{"longer value of one", func(t *testing.T, s *scene) {
			s.hear(said(1, "e1", "user", "lives_in", "Oslo", "The user lives in Oslo.", one))
			want(t, s.hear(said(2, "e2", "user", "lives_in", "Oslo, Norway", "The user lives in Oslo, Norway.", one)), "update refinement")
			want(t, s.hear(said(3, "e3", "user", "lives_in", "Norway", "The user lives in Norway.", one)), "noop duplicate")
			s.knows(3, "The user lives in Oslo, Norway.")
		}},
		{"end of a name is another name", func(t *testing.T, s *scene) {
			s.hear(said(1, "e1", "user", "lives_in", "New York", "The user lives in New York.", one))
			want(t, s.hear(said(2, "e2", "user", "lives_in", "York", "The user lives in York.", one)), "update contradiction")
		}},
		{"no longer", func(t *testing.T, s *scene) {
			s.hear(said(1, "e1", "user", "habit", "smokes", "The user smokes."))
			want(t, s.hear(said(2, "e2", "user", "habit", "smokes", "The user no longer smokes.", negated)), "delete negation")
			s.knows(2)
		}},
		{"no longer what was never known", func(t *testing.T, s *scene) {
			want(t, s.hear(said(2, "e2", "user", "habit", "smokes", "The user no longer smokes.", negated)), "noop negation")
		}},
		{"no longer an employee", func(t *testing.T, s *scene) {
			s.hear(said(1, "e1", "user", "work", "as a hydrologist at Fenwick Labs", "The user works as a hydrologist at Fenwick Labs.", one))
			want(t, s.hear(said(2, "e2", "user", "work", "at Fenwick", "The user no longer works at Fenwick.", one, negated)), "update negation")
			s.knows(2, "The user works as a hydrologist.")
		}},
		{"what takes no place is deleted", func(t *testing.T, s *scene) {
			s.hear(said(1, "e1", "user", "work", "as a cook", "The user works as a cook.", one))
			got := s.hear(said(2, "e2", "user", "employment_status", "retired", "The user is retired.", one,
				retracts(events.Triple{Subject: "user", Predicate: "work"})))
			want(t, got, "add new", "delete negation")
			s.knows(2, "The user is retired.")
		}},
		{"twice in a batch", func(t *testing.T, s *scene) {
			got := s.hear(
				said(1, "e1", "user", "likes", "tea", "The user likes tea."),
				said(1, "e2", "user", "likes", "tea", "The user really likes tea."),
				said(1, "e3", "user", "lives_in", "Oslo", "The user lives in Oslo.", one),
				said(1, "e4", "user", "lives_in", "Bergen", "The user lives in Bergen.", one),
			)
			want(t, got, "add new", "update refinement", "add new", "update contradiction")
			s.knows(1, "The user really likes tea.", "The user lives in Bergen.")
		}},
	}
}
