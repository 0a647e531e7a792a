package auth

import (
	"encoding/json"
	"testing"
	"time"
)

// TestForget: an erased user leaves the list of a key, which reaches no more users than
// before.
func TestForget(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	is := func(user string) bool { return user == "nora" }
	for name, c := range map[string]struct {
		project string
		users   []string
		left    int
		revoked bool
	}{
		"one of two":         {"p", []string{"nora", "ana"}, 1, false},
		"the only one":       {"p", []string{"nora"}, 0, true},
		"another":            {"p", []string{"ana"}, 1, false},
		"of another project": {"q", []string{"nora"}, 1, false},
		"no list":            {"p", nil, 0, false},
	} {
		entry, err := json.Marshal(Key{ID: "k", Project: c.project, Role: Reader, Users: c.users})
		if err != nil {
			t.Fatal(err)
		}
		var got Key
		if err := json.Unmarshal(Forget(entry, "p", is, now), &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Users) != c.left || (got.RevokedAt != nil) != c.revoked {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for _, other := range []string{"", "no JSON", `{"uses":3}`} {
		if got := string(Forget([]byte(other), "p", is, now)); got != other {
			t.Errorf("%q became %q", other, got)
		}
	}
}
