package rulepack

import (
	"strings"
	"unicode"
)

// Of the words of a text in a language that a pack reads, this share at least is
// frequent there or is in a pattern. Texts with fewer words than fewWords may be in
// any language.
const (
	markedShare = 0.3
	fewWords    = 12
)

// Reads reports whether a pack reads the language of texts of one user. It is true
// where that cannot be known: of a few words, and of a script whose pack knows no
// frequent words.
func (x *Extractor) Reads(texts []string) bool {
	var words []string
	for _, text := range texts {
		words = append(words, strings.FieldsFunc(strings.ToLower(blank(text)), func(r rune) bool {
			return !unicode.IsLetter(r) && r != '\'' && r != '’'
		})...)
	}
	letters := 0
	for _, w := range words {
		letters += len([]rune(w))
	}
	const wordLength = 4 // where words are not written apart, letters tell how much was said
	if max(len(words), letters/wordLength) < fewWords {
		return true
	}
	whole := strings.Join(words, " ")
	for _, l := range x.languages {
		if l.reads(whole) && (len(l.lx.markers) == 0 || l.share(words) >= markedShare) {
			return true
		}
	}
	return false
}

// share is how many of the words are markers, 0 to 1.
func (l *language) share(words []string) float64 {
	n := 0
	for _, w := range words {
		if i := strings.IndexAny(w, "'’"); i > 0 {
			w = w[:i] + "'"
		}
		if l.lx.markers[w] {
			n++
		}
	}
	return float64(n) / float64(max(len(words), 1))
}
