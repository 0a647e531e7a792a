package sqlite

import (
	"fmt"
	"path/filepath"
	"testing"

	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// TestPlacesFollowWrites: what a selector matches is looked up again once a
// scope or a session of the user is new, and not before.
func TestPlacesFollowWrites(t *testing.T) {
	t.Parallel()
	s := openAt(t, Config{Path: filepath.Join(t.TempDir(), "memory.db")})
	selectors := map[string]scope.Selector{
		"user":            {Project: "p", User: new("u")},
		"agent":           {Project: "p", User: new("u"), Agent: new("a1")},
		"session":         {Project: "p", User: new("u"), Session: new("s1")},
		"session, agents": {Project: "p", User: new("u"), Agent: new("a1"), Session: new("s1")},
		"project":         {Project: "p"},
		"another":         {Project: "p", User: new("v")},
		"no user":         {Project: "p", User: new("")},
	}
	found := map[string]int{}
	n := 0
	for _, agent := range []string{"", "a1", "a2"} {
		for _, session := range []string{"s1", "s2"} {
			n++
			e := testEpisode("u", fmt.Sprint(n))
			e.Scope.Agent, e.Scope.Session, e.Content = agent, session, "tea"
			if _, err := s.PutEpisode(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			for name, sel := range selectors {
				if sel.Project == e.Scope.Project && (sel.User == nil || *sel.User == "u") &&
					(sel.Agent == nil || *sel.Agent == agent) && (sel.Session == nil || *sel.Session == session) {
					found[name]++
				}
				for range 2 { // the second from memory
					hits, err := s.SearchText(t.Context(), sel, "tea", store.SearchQuery{Target: store.Episodes, Limit: 100})
					if err != nil || len(hits) != found[name] {
						t.Errorf("after %d, %s: %d hits, %v, want %d", n, name, len(hits), err, found[name])
					}
				}
			}
		}
	}
	reads := 0
	for range 2 {
		if _, err := s.keptPlaces(store.Facts, selectors["agent"], func() ([]place, error) { reads++; return nil, nil }); err != nil {
			t.Fatal(err)
		}
	}
	if reads != 1 {
		t.Errorf("read %d times, want once", reads)
	}
}
