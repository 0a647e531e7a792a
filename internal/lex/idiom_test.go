package lex

import "testing"

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"What do I do for a living?":           "What do I do job?",
		"These days, how do I get around town": "now, how do I commute town",
		"Where did I live in May?":             "Where did I live in May?",
		"a living":                             "a living",
		"for a":                                "for a",
		"":                                     "",
	} {
		if got := Plain(text); got != want {
			t.Errorf("Plain(%q) = %q, want %q", text, got, want)
		}
	}
}
