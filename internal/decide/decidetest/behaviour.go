package decidetest

import (
	"testing"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// behaviour is the table of behaviour that users may rely on, from known facts and
// new statements to the facts known afterwards.
func behaviour() []row {
	return []row{
		{"first name", func(t *testing.T, s *scene) {
			got := s.hear(said(1, "e1", "user", "name", "Bo", "The user's name is Bo.", one))
			want(t, got, "add new")
			s.knows(1, "The user's name is Bo.")
		}},
		{"several facts of one conversation", func(t *testing.T, s *scene) {
			got := s.hear(
				said(1, "e1", "user", "name", "Nora", "The user's name is Nora.", one),
				said(1, "e1", "user", "work", "as a hydrologist at Fenwick Labs", "The user works as a hydrologist at Fenwick Labs.", one),
				said(1, "e3", "user", "studies", "river ice and sediment", "The user studies river ice and sediment."),
				said(1, "e3", "user", "prefers", "Julia over Matlab", "The user prefers Julia over Matlab for plotting."),
			)
			want(t, got, "add new", "add new", "add new", "add new")
		}},
		{"nothing said", func(t *testing.T, s *scene) {
			want(t, s.hear())
		}},
		{"said again", func(t *testing.T, s *scene) {
			s.hear(said(1, "e1", "user", "likes", "Python", "The user likes Python."))
			got := s.hear(said(2, "e2", "user", "likes", "Python", "The user likes Python."))
			want(t, got, "noop duplicate")
			if f := s.Facts()[0]; len(f.SourceEpisodeIDs) != 2 || f.Revision != 1 {
				t.Errorf("sources %v at revision %d, want two sources at revision 1", f.SourceEpisodeIDs, f.Revision)
			}
		}},
		{"moved", func(t *testing.T, s *scene) {
			s.hear(said(1, "e1", "user", "lives_in", "Oslo", "The user lives in Oslo.", one))
			got := s.hear(said(20, "e2", "user", "lives_in", "Bergen", "The user lives in Bergen.", one, since(day(13))))
			want(t, got, "update contradiction")
			s.knows(20, "The user lives in Bergen.")
			v := s.History()
			if len(v) != 2 || v[0].ID != v[1].ID || !v[1].ValidFrom.Equal(day(13)) || !v[0].ValidUntil.Equal(day(13)) {
				t.Errorf("history %+v, want two dated versions of one fact", v)
			}
		}},
		{"work refined", func(t *testing.T, s *scene) {
			s.hear(said(1, "e1", "user", "work", "in tech", "The user works in tech.", one))
			got := s.hear(said(2, "e2", "user", "work", "as a senior engineer at Fenwick", "The user works as a senior engineer at Fenwick.", one))
			want(t, got, "update refinement")
			s.knows(2, "The user works as a senior engineer at Fenwick in tech.")
			if f := s.Facts()[0]; len(f.SourceEpisodeIDs) != 2 {
				t.Errorf("merged fact rests on %v, want both episodes", f.SourceEpisodeIDs)
			}
		}},
		{"employer left", func(t *testing.T, s *scene) {
			s.hear(said(1, "e1", "user", "work", "as a hydrologist at Fenwick Labs", "The user works as a hydrologist at Fenwick Labs.", one))
			got := s.hear(said(2, "e2", "user", "work", "at Tarn Institute", "The user works at Tarn Institute.", one,
				retracts(events.Triple{Subject: "user", Predicate: memory.PredicateWork, Object: "at Fenwick"})))
			want(t, got, "update contradiction")
			s.knows(2, "The user works as a hydrologist at Tarn Institute.")
		}},
		{"eats meat again", func(t *testing.T, s *scene) {
			s.hear(said(1, "e1", "user", "diet", "vegetarian", "The user is vegetarian."))
			got := s.hear(said(2, "e2", "user", "diet", "eats meat", "The user eats meat.",
				retracts(events.Triple{Subject: "user", Predicate: "diet", Object: "vegetarian"},
					events.Triple{Subject: "user", Predicate: "diet", Object: "vegan"})))
			want(t, got, "update negation")
			s.knows(2, "The user eats meat.")
		}},
		{"a brother's dislike", func(t *testing.T, s *scene) {
			s.hear(said(1, "e1", "user", "likes", "cilantro", "The user likes cilantro."))
			got := s.hear(said(2, "e2", "Tom", "dislikes", "cilantro", "Tom dislikes cilantro."))
			want(t, got, "add new")
			s.knows(2, "The user likes cilantro.", "Tom dislikes cilantro.")
		}},
		{"new number", func(t *testing.T, s *scene) {
			s.hear(said(1, "e1", "user", "phone", "ends in 41", "The user's phone number ends in 41.", one))
			got := s.hear(said(2, "e2", "user", "phone", "ends in 42", "The user's phone number ends in 42.", one))
			want(t, got, "update contradiction")
			s.knows(2, "The user's phone number ends in 42.")
		}},
	}
}
