package lex

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Fold returns text with compatibility forms (NFKC) and case folded, and with
// the spellings that readers take for the same brought together: typographic
// apostrophes and hyphens, and Cyrillic ё as е. Invalid UTF-8 reads as U+FFFD.
func Fold(text string) string {
	if isASCII(text) {
		return strings.ToLower(text)
	}
	text = compose(text)
	// Folding takes Cherokee to upper case; lower case again makes it stable.
	text = strings.ToLower(cases.Fold().String(text))
	if strings.ContainsRune(text, 'ё') {
		text = strings.ReplaceAll(text, "ё", "е")
	}
	// Folding can take a text out of its normal form (İ gives i and a dot).
	return norm.NFKC.String(text)
}

// compose is the part of Fold that keeps case.
func compose(text string) string {
	if isASCII(text) {
		return text
	}
	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	return strings.Map(plainPunctuation, norm.NFKC.String(text))
}

func plainPunctuation(r rune) rune {
	switch r {
	case '’', '‘', 'ʼ', '`', '´':
		return '\''
	case '‐', '‑':
		return '-'
	}
	return r
}

// plainLetters removes diacritics, so that "malmo" finds Malmö.
func plainLetters(word string) string {
	return norm.NFC.String(strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFD.String(word)))
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
