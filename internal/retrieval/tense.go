package retrieval

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"

	"palimpsest/internal/lex"
	"palimpsest/internal/store"
)

// tense tells whether a question asks for the present state or for an earlier one.
type tense int

const (
	anyTense tense = iota
	asksNow
	asksBefore
)

// The words that tell a tense. A thing may be old by its age, so "old" counts only after
// "my" and "our".
var (
	nowWords = []string{
		"now", "nowadays", "currently", "current", "presently", "latest", "newest",
		"сейчас", "теперь", "текущий", "текущая", "нынешний", "нынешняя", "现在", "目前",
	}
	nowPhrases  = []string{"these days", "the moment", "at present"}
	beforeWords = []string{
		"before", "previous", "previously", "former", "formerly", "earlier", "ex",
		"раньше", "прежде", "прежний", "прежняя", "бывший", "бывшая", "以前", "之前",
	}
	ownersWords = []string{"my", "our", "мой", "моя", "наш", "наша"}
	oldWords    = []string{"old", "first", "старый", "старая", "первый", "первая"}
)

func tenseOf(words []string) tense {
	for i, w := range words {
		switch {
		case slices.Contains(nowWords, w), i > 0 && slices.Contains(nowPhrases, words[i-1]+" "+w):
			return asksNow
		case slices.Contains(beforeWords, w), w == "used" && i+1 < len(words) && words[i+1] == "to",
			slices.Contains(oldWords, w) && i > 0 && slices.Contains(ownersWords, words[i-1]):
			return asksBefore
		}
	}
	return anyTense
}

// asksName reports whether a question asks for a person, a place or a name.
func asksName(words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool {
		switch w {
		case "who", "whom", "whos", "who's", "where", "name", "names", "called", "кто", "кого", "где", "куда", "зовут", "имя":
			return true
		}
		return false
	})
}

// holdsName reports whether a text holds a word with a capital letter that begins no
// sentence.
func holdsName(text string) bool {
	begins := true
	for field := range strings.FieldsSeq(text) {
		first, last := []rune(field)[0], field[len(field)-1]
		if !begins && unicode.IsUpper(first) && !slices.Contains(ownWords, lex.Fold(strings.TrimRight(field, ".,!?"))) {
			return true
		}
		begins = last == '.' || last == '!' || last == '?' || last == ':'
	}
	return false
}

// span is the time from the first turn to the last.
type span struct{ first, last time.Time }

// spanOf is the time between the first and the last of the turns found. Facts do not count:
// one may tell of a birth.
func (p *pool) spanOf() (s span) {
	for _, c := range p.all {
		if c.doc == nil {
			continue
		}
		at := c.doc.at
		if s.first.IsZero() || at.Before(s.first) {
			s.first = at
		}
		if at.After(s.last) {
			s.last = at
		}
	}
	return s
}

// lateness is -1 at the beginning of the span and 1 at its end.
func (s span) lateness(at time.Time) float64 {
	all := s.last.Sub(s.first)
	if all <= 0 {
		return 0
	}
	return min(1, max(-1, 2*float64(at.Sub(s.first))/float64(all)-1))
}

func (c *candidate) said() time.Time {
	if c.doc != nil {
		return c.doc.at
	}
	return c.hit.Fact.EventTime
}

// measureAge sets what a candidate's time says.
func (p *pool) measureAge(c *candidate) {
	late := p.span.lateness(c.said())
	switch p.asked.tense {
	case asksNow:
		c.values[aged] = late
	case asksBefore:
		c.values[aged] = -late
	}
}

// changed is the last of the turns found that a fact comes from, where they stated
// different versions of it. To a question for what was before each version may be an
// answer: it is nil then.
func (p *pool) changed(f *store.Fact) (last *candidate) {
	if len(f.Supersedes) == 0 || p.asked.tense == asksBefore {
		return nil
	}
	for _, id := range f.SourceEpisodeIDs {
		e := p.byID[sourceID{f.Scope, id}]
		if e != nil && (last == nil || cmp.Or(e.doc.at.Compare(last.doc.at), cmp.Compare(e.at.ordinal, last.at.ordinal)) > 0) {
			last = e
		}
	}
	return last
}

// outdates reports whether a fact was changed since one of its turns stated it.
func (c *candidate) outdates(turn *candidate) bool { return c.changed != nil && c.changed != turn }
