package rulepack

import (
	"slices"
	"strings"
	"unicode"

	"palimpsest/pkg/events"
)

// mentions finds the names in a sentence. A single capital at its beginning
// counts only where it is used as a name: a verb, "'s" or "and" follows.
func (lx *lexicon) mentions(ts []token) []events.Mention {
	if len(ts) == 0 {
		return nil
	}
	first := 0
	if n := lx.nameAt(ts, 0); n == 1 && !lx.subjectLike(ts) {
		first = 1
	} else if n > 1 && lx.participle(ts[0]) {
		first = 1
	}
	return lx.names(ts[first:])
}

// subjectLike reports whether the first token of a sentence is its subject.
func (lx *lexicon) subjectLike(ts []token) bool {
	if len(ts) < 2 || lx.participle(ts[0]) {
		return false
	}
	next := ts[1]
	switch {
	case next.low == "'s", lx.is(next, isBe|isAuxiliary), lx.third[next.low] != "", next.low == "," && len(ts) > 2 && ts[2].capital():
		return true
	case lx.followers[next.low] != "":
		return true
	case lx.is(next, isAnd):
		return len(ts) > 2 && ts[2].capital()
	}
	return next.word && !next.capital() && (strings.HasSuffix(next.low, "ed") || strings.HasSuffix(next.low, "s") && len(next.low) > 3) ||
		irregular[next.low]
}

// participle reports whether a word looks like a verb that lost its subject.
func (lx *lexicon) participle(t token) bool {
	return strings.HasSuffix(t.low, "ed") || strings.HasSuffix(t.low, "ing") || irregular[t.low]
}

// irregular are past forms that begin or follow the subject of a note.
var irregular = map[string]bool{
	"ran": true, "sent": true, "set": true, "spoke": true, "went": true, "met": true, "put": true, "said": true,
	"wrote": true, "made": true, "took": true, "told": true, "came": true, "gave": true, "built": true, "got": true,
	"found": true, "brought": true, "held": true, "kept": true, "led": true, "left": true, "read": true, "saw": true,
}

// names finds the spans of capitalised words.
func (lx *lexicon) names(ts []token) []events.Mention {
	if lx.capitalNouns {
		return nil
	}
	var out []events.Mention
	for i := 0; i < len(ts); {
		n := lx.nameAt(ts, i)
		if n == 0 {
			i++
			continue
		}
		if n > 1 || !acronym(ts[i].text) {
			out = append(out, events.Mention{Name: source(ts[i : i+n]), Type: lx.typeOf(ts, i, n)})
		}
		i += n
	}
	return out
}

// acronym reports whether a word is an abbreviation in capitals, which names a thing
// more often than a person.
func acronym(s string) bool {
	upper := 0
	for _, r := range s {
		if unicode.IsUpper(r) {
			upper++
		}
	}
	return upper > 1 && upper == len([]rune(s))
}

// nameAt is how many tokens from i on are one name.
func (lx *lexicon) nameAt(ts []token, i int) int {
	if !lx.namelike(ts[i]) || lx.is(ts[i], isNotName) {
		return 0
	}
	n := 1
	for i+n < len(ts) && n < 6 {
		next := ts[i+n]
		_, ends := lx.endings[ts[i+n-1].low]
		switch {
		case lx.namelike(next) && next.start > ts[i+n-1].start:
			n++
			continue
		case ends && next.low == "of" && i+n+1 < len(ts) && lx.namelike(ts[i+n+1]):
			n += 2
			continue
		}
		break
	}
	return n
}

// particles is how many tokens in front of a part of a name belong to the name.
func (lx *lexicon) particles(ts []token) int {
	for i, t := range ts[:min(len(ts), 3)] {
		if !lx.is(t, isParticle) || t.capital() {
			if t.word && t.capital() {
				return i
			}
			return 0
		}
	}
	return 0
}

func (lx *lexicon) namelike(t token) bool {
	const closed = isSpeaker | isOwn | isOther | isBe | isLead | isFiller | isNegator | isUnreal | isAsking |
		isAuxiliary | isAsked | isJoint | isBinder | isStop | isPreposition | isArticle | isVerb
	return t.word && !t.virtual() && t.capital() && t.low != "'s" && lx.words[t.low]&closed == 0
}

// typeOf guesses from the name's last word and the words around it.
func (lx *lexicon) typeOf(ts []token, i, n int) events.EntityType {
	if t, ok := lx.endings[ts[i+n-1].low]; ok {
		return t
	}
	if i+n < len(ts) {
		if t, ok := lx.followers[ts[i+n].low]; ok {
			return t
		}
	}
	if i > 0 {
		switch before := ts[i-1].low; {
		case before == "in" || before == "near" || before == "on" && n == 1:
			return events.EntityPlace
		case before == "at" || before == "to" && n == 1:
			return events.EntityOrganization
		case before == "the" && n > 1:
			return events.EntityProject
		}
	}
	return events.EntityPerson
}

func within(list []events.Mention, name string) bool {
	return slices.ContainsFunc(list, func(e events.Mention) bool {
		return strings.Contains(e.Name, name) || strings.Contains(name, e.Name)
	})
}

// distinct keeps the first mention of each name, and drops the first names of
// persons whose full name is also mentioned.
func distinct(in []events.Mention) []events.Mention {
	var out []events.Mention
	for i, e := range in {
		known := slices.ContainsFunc(in[:i], func(o events.Mention) bool { return o.Name == e.Name })
		part := slices.ContainsFunc(in, func(o events.Mention) bool {
			return o.Type == events.EntityPerson && strings.HasPrefix(o.Name, e.Name+" ")
		})
		if !known && !part {
			out = append(out, e)
		}
	}
	return out
}
