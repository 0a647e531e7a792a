package lex

import (
	"strings"

	"github.com/kljensen/snowball/english"
	"github.com/kljensen/snowball/russian"
)

// maxTerm bounds a term in bytes: longer words are data, not language.
const maxTerm = 64

// Terms returns the index terms of a text, in order and with repetitions. A
// text and a query that are about the same have terms in common:
//
//   - words are folded, stop words (English, Russian) left out, and the rest
//     stemmed by script: Latin as English, without diacritics, Cyrillic as
//     Russian;
//   - what is written together (node-41, 2024-05-01, bo@example.com, 10,000)
//     gives its parts and the whole without its punctuation;
//   - scripts without spaces give each character and each pair of neighbours.
//
// Every term consists of letters, digits and marks alone, so that none can act
// as query syntax anywhere, and is at most 64 bytes long.
func Terms(text string) []string {
	return AppendTerms(make([]string, 0, len(text)/5+1), text)
}

// AppendTerms appends the [Terms] of text to dst.
func AppendTerms(dst []string, text string) []string {
	folded := Fold(text)
	var last word   // the word before
	var chain chain // words written together
	for w := range split(folded) {
		if w.script == unspaced {
			dst = chain.flush(dst, folded)
			dst = append(dst, w.text)
			if last.script == unspaced && last.end == w.start {
				dst = append(dst, last.text+w.text)
			}
			last = w
			continue
		}
		if !chain.extends(folded, w) {
			dst = chain.flush(dst, folded)
			chain.start = w.start
		}
		chain.end, chain.words = w.end, chain.words+1
		dst = appendParts(dst, w)
		last = w
	}
	return chain.flush(dst, folded)
}

// appendParts appends the terms of one word, which may hold punctuation that
// UAX #29 keeps inside words (don't, 3.14, example.com, a_b).
func appendParts(dst []string, w word) []string {
	if isPlain(w.text) {
		return appendTerm(dst, w.text, w.script)
	}
	if w.script != number && strings.ContainsRune(w.text, '\'') && !strings.ContainsAny(w.text, "._:") {
		return appendTerm(dst, w.text, w.script) // don't, user's: the stemmer knows
	}
	for part := range strings.FieldsFuncSeq(w.text, func(r rune) bool { return !isTermRune(r) }) {
		dst = appendTerm(dst, part, scriptOf(part))
	}
	return dst
}

func appendTerm(dst []string, w string, s script) []string {
	if len(w) > maxTerm {
		return dst
	}
	if t := stemOf(w, s); t != "" && len(t) <= maxTerm {
		dst = append(dst, t)
	}
	return dst
}

// chain is a stretch of words with one joining character between neighbours.
type chain struct {
	start, end int
	words      int
}

func (c *chain) extends(s string, w word) bool {
	if c.words == 0 || w.start-c.end != 1 {
		return false
	}
	switch s[c.end] {
	case '-', '@', '/', '.', ':', '_', '+', '#':
		return true
	}
	return false
}

// flush appends the whole of a chain and ends it.
func (c *chain) flush(dst []string, s string) []string {
	whole, n := s[c.start:c.end], c.words
	*c = chain{}
	if n == 0 || len(whole) > maxTerm || isPlain(whole) {
		return dst
	}
	if n == 1 && strings.ContainsRune(whole, '\'') && scriptOf(whole) != number {
		return dst
	}
	joined := strings.Map(func(r rune) rune {
		if isTermRune(r) {
			return r
		}
		return -1
	}, whole)
	return appendTerm(dst, joined, scriptOf(joined))
}

func isTermRune(r rune) bool { return isWordRune(r) || isMark(r) }

func isPlain(w string) bool {
	for _, r := range w {
		if !isTermRune(r) {
			return false
		}
	}
	return true
}

// stem returns the index form of a folded word, empty for a stop word.
func stem(w string, s script) string {
	switch s {
	case latin:
		if isStopWord(w) {
			return ""
		}
		if !isASCII(w) {
			w = plainLetters(w)
		}
		return trim(english.Stem(w, false))
	case cyrillic:
		if russian.IsStopWord(w) {
			return ""
		}
		return trim(russian.Stem(w, false))
	}
	return trim(w)
}

// isStopWord is the stemmer's list without the words that are names as well,
// and with the contractions it lacks, also as people type them without an apostrophe.
func isStopWord(w string) bool {
	switch w {
	case "will", "don":
		return false
	case "i'm", "i've", "i'd", "i'll", "it's", "that's", "there's", "what's", "who's",
		"he's", "she's", "we're", "we've", "you're", "you've", "they're", "they've", "let's",
		"don't", "doesn't", "didn't", "isn't", "aren't", "wasn't", "weren't", "won't", "can't",
		"im", "ive", "thats", "theres", "whats", "whos", "hes", "shes", "weve", "youre", "youve", "theyre", "theyve",
		"dont", "doesnt", "didnt", "isnt", "arent", "wasnt", "werent", "wont", "cant", "couldnt", "wouldnt", "shouldnt", "havent", "hasnt", "hadnt",
		"couldn't", "wouldn't", "shouldn't", "haven't", "hasn't", "hadn't", "would", "could", "ain't":
		return true
	}
	return english.IsStopWord(w)
}

// trim removes what is no letter, digit or mark from a stem.
func trim(w string) string {
	if isPlain(w) {
		return w
	}
	return strings.Map(func(r rune) rune {
		if isTermRune(r) {
			return r
		}
		return -1
	}, w)
}
