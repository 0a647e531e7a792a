package rulepack

import (
	"strings"
	"unicode"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// reading returns the languages that read a text: of those of its script that have
// markers the one with most of them in the text, else in the user's turn before;
// of equals the first. Languages without markers read every text of their script.
func (x *Extractor) reading(content string, before []memory.Episode) []*language {
	var out, marked []*language
	reads := make(map[*unicode.RangeTable]bool, 2)
	for _, l := range x.languages {
		ok, known := reads[l.script]
		if !known {
			ok = l.reads(content)
			reads[l.script] = ok
		}
		switch {
		case !ok:
		case len(l.lx.markers) == 0:
			out = append(out, l)
		default:
			marked = append(marked, l)
		}
	}
	if len(marked) < 2 {
		return append(out, marked...)
	}
	best, found := mostMarked(content, marked)
	for i := len(before) - 1; i >= 0 && found == 0; i-- {
		if before[i].Role == events.RoleUser && before[i].Mode != events.ModeIncognito {
			best, found = mostMarked(before[i].Content, marked)
		}
	}
	return append(out, best)
}

// mostMarked returns the language with the most markers in a text, and how many.
func mostMarked(text string, marked []*language) (best *language, most int) {
	counts := make([]int, len(marked))
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' && r != '’' }) {
		word = strings.ToLower(word)
		if i := strings.IndexAny(word, "'’"); i > 0 {
			word = word[:i] + "'"
		}
		for i, l := range marked {
			if l.lx.markers[word] {
				counts[i]++
			}
		}
	}
	best = marked[0]
	for i, n := range counts {
		if n > most {
			best, most = marked[i], n
		}
	}
	return best, most
}
