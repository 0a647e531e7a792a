package rulepack

import (
	"fmt"
	"strings"
	"testing"

	"palimpsest/pkg/events"
)

// A remark on a place or an employer is no name of it.
func TestRemarksStateNoValue(t *testing.T) {
	t.Parallel()
	x, err := New()
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"The city I live in is beautiful.":          "",
		"The city I live in is getting expensive.":  "",
		"The city I live in is Bath.":               "lives_in Bath",
		"Where I live is noisy.":                    "",
		"Where I live is Bath.":                     "lives_in Bath",
		"The company I work for is Fenwick.":        "work at Fenwick",
		"My company is hiring.":                     "",
		"The company I work for is called fenwick.": "work at Fenwick",
		"The movie is what I hate about Mondays.":   "",
		"Mondays are what I hate.":                  "dislikes Mondays",
		"I'm divorced from reality.":                "marital_status divorced",
		"I'm at Siemens now since March.":           "work at Siemens",
	} {
		var got []string
		for _, c := range extracted(t, x, userSays("1", text)) {
			if !c.Transient {
				got = append(got, c.Predicate+" "+c.Object)
			}
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%q states %q, want %q", text, got, want)
		}
	}
}

// A text that tells a change many times has one candidate that a decider takes.
func TestRetractsAreBounded(t *testing.T) {
	t.Parallel()
	x, err := New()
	if err != nil {
		t.Fatal(err)
	}
	var others strings.Builder
	for i := range 2 * events.MaxRetracts {
		fmt.Fprintf(&others, "I swapped the Corsa%d for a Skoda. ", i)
	}
	for text, want := range map[string]int{strings.Repeat("I swapped the Corsa for a Skoda. ", 2*events.MaxRetracts): 2, others.String(): events.MaxRetracts} {
		found := extracted(t, x, userSays("1", text))
		if len(found) != 1 || len(found[0].Retracts) != want || !found[0].Moves || found[0].Retracts[want-1].Predicate != "" {
			t.Errorf("%.60q: %d retracts wanted, got %+v", text, want, found)
		}
	}
}
