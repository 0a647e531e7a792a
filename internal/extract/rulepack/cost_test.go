package rulepack

import (
	"strings"
	"testing"
	"time"

	"palimpsest/internal/extract"
	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// TestRepeatedWords holds that a text of repeated words takes bounded work: without a
// bound for a clause and a text, 3 KB of "now" took a minute.
func TestRepeatedWords(t *testing.T) {
	t.Parallel()
	x, err := New()
	if err != nil {
		t.Fatal(err)
	}
	const size = 3000 // bytes
	for _, w := range []string{"now ", "not ", "no longer ", "i ", "my brother's ", "I left Oslo now. ", "after ", "until ", "in Oslo ", "I swapped the ", "no longer with ", "бросил ", "раньше жил в ", "вместо кофе теперь ", "a", "я", "1", "aGVsbG8gd29ybGQx", "a-"} {
		e := memory.Episode{
			ID: "e1", Scope: scope.Scope{Project: "p", User: "u"}, Role: events.RoleUser, Ordinal: 1,
			Content: strings.Repeat(w, size/len(w)) + ". I live in Ghent.", Timestamp: time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC),
		}
		found, err := x.Extract(t.Context(), []memory.Episode{e}, extract.Context{Scope: e.Scope.Fact()})
		if err != nil {
			t.Fatal(err)
		}
		lives := false
		for _, c := range found {
			lives = lives || c.Predicate == "lives_in" && c.Object == "Ghent"
		}
		if !lives && w == "now " {
			t.Errorf("after %q the home is not read: %v", w, found)
		}
	}
}
