package bench

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestConfigNamesWhatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]Config{
		"only: \"speed\" is none of publish": {Only: []string{"publish", "speed"}},
		"rounds: -1":                         {Rounds: -1},
		"facts: 10 ":                         {Facts: []int{1000, 10}},
	} {
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
	if err := (Config{Only: Names(), Rounds: 3, Facts: []int{1000}}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestEachRoundBeginsWithAnotherSide(t *testing.T) {
	t.Parallel()
	var order []string
	side := func(name string) func(context.Context) error {
		return func(context.Context) error { order = append(order, name); return nil }
	}
	b := bench{Config: Config{Rounds: 3}}
	if err := b.rounds(t.Context(), side("a"), side("b")); err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "b", "b", "a", "a", "b"}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
}

func TestRoundsEndWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	turns := 0
	b := bench{Config: Config{Rounds: 5}}
	err := b.rounds(ctx, func(context.Context) error { turns++; cancel(); return nil })
	if !errors.Is(err, context.Canceled) || turns != 1 {
		t.Errorf("%d turns, %v", turns, err)
	}
}

// TestNoTraceIsLeft: a program that ends at once fails each measure that starts
// it, and no directory stays behind.
func TestNoTraceIsLeft(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	report, err := Run(t.Context(), Config{Only: []string{"publish", "idle"}, Quick: true}, Parts{Program: "/bin/false"})
	if err == nil || !strings.Contains(err.Error(), "measure publish: ") || !strings.Contains(err.Error(), "measure idle: ") {
		t.Errorf("error %v", err)
	}
	if len(report.Measures) != 0 {
		t.Errorf("measured %+v", report.Measures)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestWordsAreTheSameEveryTimeAndAllDifferent(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for rank := range vocabulary {
		seen[word(rank)] = true
	}
	for i := range 10_000 {
		seen[strings.ToLower(name(i))] = true
	}
	if len(seen) != vocabulary+10_000 {
		t.Errorf("%d different words of %d", len(seen), vocabulary+10_000)
	}
	if a, b := newSpeech(7).words(9), newSpeech(7).words(9); a != b {
		t.Errorf("%q and then %q", a, b)
	}
	if q := questions(1, 2); len(q) != 48 || !slices.Equal(q, questions(1, 2)) || slices.Equal(q, questions(2, 2)) {
		t.Errorf("questions %v", q)
	}
}
