package lex

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

//go:embed synonyms.txt
var synonymsFile string

// Synonym is another word that an answer may use for a word of a question.
type Synonym struct {
	Word string // as [Terms] reads it
	Term string // its only term, or its pair of characters
	// Weight is how much it counts beside the word itself, which counts 1.
	Weight float64
}

// The weights of synonyms.
const (
	formWeight = 1.0
	sameWeight = 0.7
	kindWeight = 0.5
)

// Synonyms returns the synonyms of an index term, from a table of everyday words in
// English, Russian and Chinese, or those of two folded words that stand side by side, joined by _.
func Synonyms(term string) []Synonym { return everyday().synonyms[term] }

// SaysLittle reports whether an index term is of a word that goes with anything: go,
// use, kind.
func SaysLittle(term string) bool { return everyday().little[term] }

// thesaurus is what is known of words.
type thesaurus struct {
	synonyms map[string][]Synonym
	little   map[string]bool
	idioms   map[string][]idiom // by their first word
}

var everyday = sync.OnceValue(func() thesaurus { return readThesaurus(synonymsFile) })

func readThesaurus(table string) thesaurus {
	all, little, idioms := map[string][]Synonym{}, map[string]bool{}, map[string][]idiom{}
	for line := range strings.Lines(table) {
		line, _, _ = strings.Cut(line, "#")
		if kinds, of, found := strings.Cut(line, ">"); found {
			pair(all, strings.Fields(kinds), strings.Fields(of), kindWeight)
		} else if words, found := strings.CutPrefix(line, "-"); found {
			for _, term := range Terms(words) {
				little[term] = true
			}
		} else if said, found := strings.CutPrefix(line, "!"); found {
			words, plain, _ := strings.Cut(strings.TrimSpace(said), " ")
			one := idiom{strings.Split(words, "_"), plain}
			idioms[one.words[0]] = append(idioms[one.words[0]], one)
		} else if forms, found := strings.CutPrefix(line, "="); found {
			pair(all, strings.Fields(forms), strings.Fields(forms), formWeight)
		} else {
			pair(all, strings.Fields(line), strings.Fields(line), sameWeight)
		}
	}
	return thesaurus{withForms(all), little, idioms}
}

// withForms lets each word find the forms of its synonyms, and each form of it what it
// finds.
func withForms(all map[string][]Synonym) map[string][]Synonym {
	whole := make(map[string][]Synonym, len(all))
	for of, list := range all {
		found := slices.Clone(list)
		add := func(s Synonym) {
			if s.Term != of && !hasTerm(found, s.Term) {
				found = append(found, s)
			}
		}
		for _, form := range list {
			if form.Weight < formWeight {
				continue
			}
			for _, s := range all[form.Term] {
				add(s)
			}
		}
		for _, s := range slices.Clone(found) {
			for _, form := range all[s.Term] {
				if s.Weight < formWeight && form.Weight == formWeight {
					add(Synonym{form.Word, form.Term, s.Weight})
				}
			}
		}
		whole[of] = found
	}
	return whole
}

// pair lets each word of from find each of to. The first line that pairs two words
// counts; so forms stand before meanings in the table.
func pair(all map[string][]Synonym, from, to []string, weight float64) {
	for _, a := range from {
		for _, b := range to {
			of, terms := termsOf(a), termsOf(b)
			if strings.Contains(a, "_") {
				of = []string{a}
			}
			if len(of) != 1 || len(terms) != 1 || of[0] == terms[0] || hasTerm(all[of[0]], terms[0]) {
				continue
			}
			all[of[0]] = append(all[of[0]], Synonym{b, terms[0], weight})
		}
	}
}

// termsOf are the terms of a word of the table. A word of two characters that are
// written without spaces is the pair alone.
func termsOf(word string) []string {
	terms := Terms(word)
	if n := len(terms); n == 3 && terms[2] == terms[0]+terms[1] {
		return terms[2:]
	}
	return terms
}

func hasTerm(list []Synonym, term string) bool {
	for _, s := range list {
		if s.Term == term {
			return true
		}
	}
	return false
}
