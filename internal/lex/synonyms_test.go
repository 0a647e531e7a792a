package lex

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSynonyms(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		of, word string
		weight   float64 // 0 where they are not synonyms
	}{
		{"job", "work", sameWeight},
		{"drove", "drive", formWeight},
		{"children", "child", formWeight},
		{"pet", "dog", kindWeight},
		{"dog", "pet", 0},
		{"employer", "company", sameWeight},
		{"colour", "color", formWeight},
		{"injuries", "broke", kindWeight}, // a form of break
		{"mail", "email", sameWeight},
		{"мама", "мать", sameWeight},
		{"машина", "автомобиль", sameWeight},
		{"питомец", "собака", kindWeight},
		{"children", "son", kindWeight},
		{"lighthouse", "work", 0},
		{"妻子", "太太", sameWeight},
		{"autumn", "october", kindWeight},
	} {
		got := 0.0
		for _, s := range Synonyms(termsOf(tc.of)[0]) {
			if s.Term == termsOf(tc.word)[0] {
				got = s.Weight
			}
		}
		if got != tc.weight {
			t.Errorf("%s finds %s with weight %v, want %v", tc.of, tc.word, got, tc.weight)
		}
	}
	for word, want := range map[string]bool{"go": true, "used": true, "guitar": false} {
		if got := SaysLittle(Terms(word)[0]); got != want {
			t.Errorf("SaysLittle(%s) = %v", word, got)
		}
	}
}

// TestSynonymTable: each word of the table is one term, and no word finds itself or
// another twice.
func TestSynonymTable(t *testing.T) {
	t.Parallel()
	for of, list := range everyday().synonyms {
		seen := []string{of}
		for _, s := range list {
			if diff := cmp.Diff([]string{s.Term}, termsOf(s.Word)); diff != "" {
				t.Errorf("%s: %s", s.Word, diff)
			}
			if slices.Contains(seen, s.Term) {
				t.Errorf("%s finds %s twice", of, s.Term)
			}
			seen = append(seen, s.Term)
		}
	}
}
