package attribute

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/lex"
)

func TestAsked(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"Where do I live?":              {"address", "lives_in"},
		"Where did I live before?":      {"lived_in"}, // not where I live now
		"What's my job?":                {"employment_status", "student", "work"},
		"Where does my brother work?":   {"employment_status", "student", "work"}, // not who the brother is
		"What's my name?":               {"name", "preferred_name"},
		"What is the name of the cat?":  {"has_pet"},
		"Am I allergic to anything?":    {"allergic_to"},
		"Где я живу?":                   {"address", "lives_in"},
		"The ferry leaves at half past": nil,
	} {
		got := slices.Sorted(maps.Keys(Asked(lex.Words(strings.ReplaceAll(text, "'s", "")))))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}
