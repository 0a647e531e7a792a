package wordpiece

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// normalizer is BERT's: what becomes of a character before words are split.
type normalizer struct {
	clean   bool // control characters vanish
	chinese bool // an ideograph is a word
	accents bool // combining marks vanish
	lower   bool
}

// words hands over the words of text and its punctuation, each once and in
// order. The bytes are valid until the function returns.
func (n normalizer) words(text string, each func(word []byte)) {
	if n.accents && !ascii(text) {
		text = norm.NFD.String(text)
	}
	var buffer [64]byte
	word := buffer[:0]
	flush := func() {
		if len(word) > 0 {
			each(word)
			word = word[:0]
		}
	}
	for _, r := range text {
		switch {
		case isSpace(r):
			flush()
		case n.drops(r):
		case isPunctuation(r), n.chinese && isIdeograph(r):
			flush()
			word = utf8.AppendRune(word, r)
			flush()
		case n.lower && r < utf8.RuneSelf:
			if 'A' <= r && r <= 'Z' {
				r += 'a' - 'A'
			}
			word = append(word, byte(r))
		case n.lower:
			word = utf8.AppendRune(word, unicode.ToLower(r))
		default:
			word = utf8.AppendRune(word, r)
		}
	}
	flush()
}

func ascii(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// isSpace leaves out \v, \f and U+0085, which are control characters to BERT.
func isSpace(r rune) bool {
	return r == ' ' || r == '\t' || r == '\n' || r == '\r' || r > 0x85 && unicode.IsSpace(r)
}

func (n normalizer) drops(r rune) bool {
	if r < utf8.RuneSelf {
		return n.clean && (r < ' ' || r == 0x7f)
	}
	return n.accents && unicode.Is(unicode.Mn, r) || n.clean && (r == utf8.RuneError || unicode.Is(unicode.C, r))
}

// isPunctuation counts all marks of ASCII, also those that Unicode calls
// symbols.
func isPunctuation(r rune) bool {
	if r < utf8.RuneSelf {
		return r > ' ' && r < '0' || r > '9' && r < 'A' || r > 'Z' && r < 'a' || r > 'z' && r < 0x7f
	}
	return unicode.IsPunct(r)
}

func isIdeograph(r rune) bool {
	return r >= 0x3400 && (r <= 0x4DBF || r >= 0x4E00 && r <= 0x9FFF || r >= 0xF900 && r <= 0xFAFF ||
		r >= 0x20000 && r <= 0x2A6DF || r >= 0x2A700 && r <= 0x2CEAF || r >= 0x2F800 && r <= 0x2FA1F)
}
