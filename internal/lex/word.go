package lex

import (
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// Words returns the words of a text in order, folded by [Fold]. Words are those
// of UAX #29 that hold a letter or a digit; text in scripts that are written
// without spaces (Han, kana, Thai and their like) gives one word a character.
func Words(text string) []string {
	words := make([]string, 0, len(text)/6+1)
	for w := range split(Fold(text)) {
		words = append(words, w.text)
	}
	return words
}

// Token is a word and where it stands in its text.
type Token struct {
	Word       string // folded
	Start, End int    // bytes of the text as given
}

// Tokens returns the words of a text in order, as [Words] does, with their places.
func Tokens(text string) []Token {
	var tokens []Token
	for w := range split(text) {
		tokens = append(tokens, Token{Fold(w.text), w.start, w.end})
	}
	return tokens
}

// word is a stretch of a text that holds a letter or a digit.
type word struct {
	text       string
	start, end int // bytes
	script     script
}

// script is how a word is turned into index terms.
type script uint8

const (
	otherScript script = iota
	latin
	cyrillic
	number     // begins with a digit
	unspaced   // one character of a script without spaces between words
	noneScript // neither letter nor digit
)

// split yields the words of s from left to right.
func split(s string) func(yield func(word) bool) {
	if isASCII(s) {
		return func(yield func(word) bool) { splitASCII(s, yield) }
	}
	return func(yield func(word) bool) { splitUnicode(s, yield) }
}

func splitUnicode(s string, yield func(word) bool) {
	state, pos := -1, 0
	for rest := s; rest != ""; {
		var w string
		w, rest, state = uniseg.FirstWordInString(rest, state)
		start := pos
		pos += len(w)
		kind := scriptOf(w)
		switch {
		case kind == noneScript:
			continue
		case kind == unspaced:
			if !splitCharacters(w, start, yield) {
				return
			}
		case !yield(word{w, start, pos, kind}):
			return
		}
	}
}

// splitCharacters splits what UAX #29 keeps together (katakana) or attaches.
func splitCharacters(w string, start int, yield func(word) bool) bool {
	for i, r := range w {
		if !isWordRune(r) {
			continue
		}
		end := i + utf8.RuneLen(r)
		if !yield(word{w[i:end], start + i, start + end, unspaced}) {
			return false
		}
	}
	return true
}

func scriptOf(w string) script {
	for _, r := range w {
		switch {
		case unicode.Is(unicode.Nd, r):
			return number
		case !isWordRune(r):
			continue
		case unicode.In(r, unicode.Latin):
			return latin
		case unicode.In(r, unicode.Cyrillic):
			return cyrillic
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana,
			unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar):
			return unspaced
		default:
			return otherScript
		}
	}
	return noneScript
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// splitASCII gives what [splitUnicode] gives, many times faster: the rules of
// UAX #29 leave few cases for ASCII.
func splitASCII(s string, yield func(word) bool) {
	for i := 0; i < len(s); {
		if !isAlnum(s[i]) && s[i] != '_' {
			i++
			continue
		}
		start := i
		for i++; i < len(s) && joined(s, i); i++ {
		}
		kind := scriptASCII(s[start:i])
		if kind != noneScript && !yield(word{s[start:i], start, i, kind}) {
			return
		}
	}
}

// joined reports whether s[i] belongs to the same word as s[i-1].
func joined(s string, i int) bool {
	if isAlnum(s[i]) || s[i] == '_' {
		return true
	}
	if i+1 >= len(s) {
		return false
	}
	before, after := s[i-1], s[i+1]
	switch s[i] {
	case '\'', '.':
		return isAlpha(before) && isAlpha(after) || isDigit(before) && isDigit(after)
	case ':':
		return isAlpha(before) && isAlpha(after)
	case ',', ';':
		return isDigit(before) && isDigit(after)
	}
	return false
}

func scriptASCII(w string) script {
	for i := range len(w) {
		switch {
		case isAlpha(w[i]):
			return latin
		case isDigit(w[i]):
			return number
		}
	}
	return noneScript
}

func isAlpha(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }
func isDigit(b byte) bool { return b >= '0' && b <= '9' }
func isAlnum(b byte) bool { return isAlpha(b) || isDigit(b) }
