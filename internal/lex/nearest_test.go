package lex

import (
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"usr", "user", 1}, {"kitten", "sitting", 3}, {"user", "usre", 2}, {"flaw", "lawn", 2}} {
		if got := distance(tc.a, tc.b); got != tc.want || got != distance(tc.b, tc.a) {
			t.Errorf("%q, %q: %d, want %d", tc.a, tc.b, got, tc.want)
		}
	}
	if got := Nearest(strings.Repeat("x", 1<<20)+"user", []string{"user", "agent"}); got == "" {
		t.Error("no name is nearest")
	}
}
