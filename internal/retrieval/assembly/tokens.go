package assembly

import (
	"cmp"
	"slices"
	"unicode"
)

// Tokens estimates the tokens of a text. The estimate is that of o200k_base or up to
// half more, in any script: a vocabulary would take 7 MB of the binary and 20 MB of
// memory.
func Tokens(text string) int {
	sum, run, of := 0, 0, other
	for _, r := range text {
		c := classOf(r)
		if c != of {
			sum, run, of = sum+of.tokens(run), 0, c
		}
		if c != space {
			run++
		}
	}
	return sum + of.tokens(run)
}

// class is a kind of characters, of which a vocabulary joins about as many.
type class int

const (
	other  class = iota // punctuation, line breaks, symbols
	space               // belongs to the token after it
	latin               // letters of the Latin script
	letter              // other letters
	digit
	dense // a character is a word or a syllable
	wide  // emoji
)

func classOf(r rune) class {
	switch {
	case r == ' ':
		return space
	case unicode.Is(unicode.Latin, r):
		return latin
	case unicode.IsDigit(r):
		return digit
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul):
		return dense
	case unicode.IsLetter(r), unicode.IsMark(r):
		return letter
	case r > 0xffff:
		return wide
	}
	return other
}

// tokens is the count for a run of n characters, fitted to o200k_base.
func (c class) tokens(n int) int {
	up := func(per int) int { return (n + per - 1) / per }
	switch c {
	case space:
		return 0
	case latin:
		return up(6)
	case letter:
		return up(5)
	case digit:
		return up(3)
	case wide:
		return 3 * n
	case dense, other:
	}
	return n
}

// inOrder sorts lines by Order, then ID.
func inOrder(lines []Line) []Line {
	lines = slices.Clone(lines)
	slices.SortFunc(lines, func(a, b Line) int { return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.ID, b.ID)) })
	return lines
}
