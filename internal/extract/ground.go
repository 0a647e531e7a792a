package extract

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Ground finds a quote in a text, ignoring differences of white space, letter case,
// quotation marks and Unicode form, and returns the text's own version of it.
func Ground(text, quote string) (verbatim string, ok bool) {
	want, _ := plain(quote)
	want = strings.TrimSpace(want)
	if want == "" {
		return "", false
	}
	have, at := plain(text)
	i := strings.Index(have, want)
	if i < 0 {
		return "", false
	}
	return strings.TrimSpace(text[at[i]:at[i+len(want)]]), true
}

// plain is a text in one spelling, and for each of its bytes, and its end, where in
// the text the character began that it comes from.
func plain(text string) (string, []int) {
	var b strings.Builder
	var at []int
	space := false
	add := func(s string, from int) {
		b.WriteString(s)
		for range len(s) {
			at = append(at, from)
		}
	}
	var it norm.Iter
	it.InitString(norm.NFKC, text)
	for !it.Done() {
		from := it.Pos()
		part := string(it.Next())
		for _, r := range part {
			if unicode.IsSpace(r) {
				if !space {
					add(" ", from)
				}
				space = true
				continue
			}
			space = false
			add(spelled(r), from)
		}
	}
	return b.String(), append(at, len(text))
}

// spelled is a character in one case, and quotation marks and dashes as on a
// keyboard.
func spelled(r rune) string {
	switch r {
	case '‘', '’', '‚', '′', '`', '´':
		return "'"
	case '“', '”', '„', '«', '»', '″':
		return `"`
	case '‹':
		return "<"
	case '›':
		return ">"
	case '‐', '‑', '‒', '–', '—', '−':
		return "-"
	}
	return string(unicode.ToLower(r))
}
