package grammar

import (
	"slices"
	"strings"
	"unicode"

	"palimpsest/pkg/events"
)

// BindsName reports whether the word at i joins the parts of a name: "Banco do Sul".
func (lx *Grammar) BindsName(ts []Token, i int) bool {
	return i > 0 && lx.Is(ts[i], Particle) && ts[i-1].Capital() && !ts[i-1].Virtual() && !lx.Is(ts[i-1], Speaker) && lx.particles(ts[i:]) == 1
}

// NameLen is how many tokens at and after at are a name.
func (lx *Grammar) NameLen(ts []Token, at int, anyCase bool) int {
	n := 0
	for i := at; i < len(ts) && n < 4; i++ {
		t := ts[i]
		if k := lx.particles(ts[i:]); n > 0 && k > 0 {
			n, i = n+k, i+k-1 // "Maria del Carmen"
			continue
		}
		if !t.Word || Digit(t.Low) || n == 0 && lx.Is(t, Other) || lx.Is(t, NotName) && !(n > 0 && t.Capital()) {
			break
		}
		if !t.Capital() {
			if n == 0 && anyCase && !lx.Is(t, Stop|Empty|Filler|Negator|Article|Preposition|Lead|Verb|Own|Be) && !strings.HasSuffix(t.Low, "ing") && (!strings.HasSuffix(t.Low, "ed") || lx.Is(t, Given)) {
				return 1
			}
			break
		}
		n++
	}
	return n
}

// Mentions finds the names in a sentence. A single capital at its beginning
// counts only where it is used as a name: a verb, "'s" or "and" follows.
func (lx *Grammar) Mentions(ts []Token) []events.Mention {
	if len(ts) == 0 {
		return nil
	}
	first := 0
	if n := lx.nameAt(ts, 0); n == 1 && !lx.subjectLike(ts) {
		first = 1
	} else if n > 1 && lx.Participle(ts[0]) {
		first = 1
	}
	return lx.Names(ts[first:])
}

// subjectLike reports whether the first token of a sentence is its subject.
func (lx *Grammar) subjectLike(ts []Token) bool {
	if len(ts) < 2 || lx.Participle(ts[0]) {
		return false
	}
	next := ts[1]
	switch {
	case next.Low == "'s", lx.Is(next, Be|Auxiliary), lx.Third[next.Low] != "", next.Low == "," && len(ts) > 2 && ts[2].Capital():
		return true
	case lx.followers[next.Low] != "":
		return true
	case lx.Is(next, And):
		return len(ts) > 2 && ts[2].Capital()
	}
	return next.Word && !next.Capital() && (strings.HasSuffix(next.Low, "ed") || strings.HasSuffix(next.Low, "s") && len(next.Low) > 3) ||
		irregular[next.Low]
}

// Participle reports whether a word looks like a verb that lost its subject.
func (lx *Grammar) Participle(t Token) bool {
	return strings.HasSuffix(t.Low, "ed") || strings.HasSuffix(t.Low, "ing") || irregular[t.Low]
}

// irregular are past forms that begin or follow the subject of a note.
var irregular = map[string]bool{
	"ran": true, "sent": true, "set": true, "spoke": true, "went": true, "met": true, "put": true, "said": true,
	"wrote": true, "made": true, "took": true, "told": true, "came": true, "gave": true, "built": true, "got": true,
	"found": true, "brought": true, "held": true, "kept": true, "led": true, "left": true, "read": true, "saw": true,
}

// Names finds the spans of capitalised words.
func (lx *Grammar) Names(ts []Token) []events.Mention {
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
		if n > 1 || !acronym(ts[i].Text) {
			out = append(out, events.Mention{Name: Source(ts[i : i+n]), Type: lx.typeOf(ts, i, n)})
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
func (lx *Grammar) nameAt(ts []Token, i int) int {
	if !lx.namelike(ts[i]) || lx.Is(ts[i], NotName) {
		return 0
	}
	n := 1
	for i+n < len(ts) && n < 6 {
		next := ts[i+n]
		_, ends := lx.endings[ts[i+n-1].Low]
		switch {
		case lx.namelike(next) && next.Start > ts[i+n-1].Start:
			n++
			continue
		case ends && next.Low == "of" && i+n+1 < len(ts) && lx.namelike(ts[i+n+1]):
			n += 2
			continue
		}
		break
	}
	return n
}

// particles is how many tokens in front of a part of a name belong to the name.
func (lx *Grammar) particles(ts []Token) int {
	for i, t := range ts[:min(len(ts), 3)] {
		if !lx.Is(t, Particle) || t.Capital() {
			if t.Word && t.Capital() {
				return i
			}
			return 0
		}
	}
	return 0
}

func (lx *Grammar) namelike(t Token) bool {
	const closed = Speaker | Own | Other | Be | Lead | Filler | Negator | Unreal | Asking |
		Auxiliary | Asked | Joint | Binder | Stop | Preposition | Article | Verb
	return t.Word && !t.Virtual() && t.Capital() && t.Low != "'s" && lx.Words[t.Low]&closed == 0
}

// typeOf guesses from the name's last word and the words around it.
func (lx *Grammar) typeOf(ts []Token, i, n int) events.EntityType {
	if t, ok := lx.endings[ts[i+n-1].Low]; ok {
		return t
	}
	if i+n < len(ts) {
		if t, ok := lx.followers[ts[i+n].Low]; ok {
			return t
		}
	}
	if i > 0 {
		switch before := ts[i-1].Low; {
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

// Within reports whether a name is a part of a mention of the list, or has one as a part.
func Within(list []events.Mention, name string) bool {
	return slices.ContainsFunc(list, func(e events.Mention) bool {
		return strings.Contains(e.Name, name) || strings.Contains(name, e.Name)
	})
}

// Distinct keeps the first mention of each name, and drops the first names of
// persons whose full name is also mentioned.
func Distinct(in []events.Mention) []events.Mention {
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

// BesideSpeaker reports whether a name in lower case stands behind a relation and in front
// of the speaker: "my flatmate jorge and i".
func (lx *Grammar) BesideSpeaker(ts []Token, at int) bool {
	return at+1 < len(ts) && ts[at].Word && lx.Words[ts[at].Low] == 0 && !Digit(ts[at].Low) && lx.Is(ts[at+1], And) && (at+2 == len(ts) || lx.Is(ts[at+2], Speaker))
}

// CalledLow reports whether a name in lower case stands behind a relation: "my brother
// tom hates cilantro". Before a copula only a known first name counts, since "my dog
// food is gone" is no name.
func (lx *Grammar) CalledLow(ts []Token, at int) bool {
	t := ts[at]
	if !t.Word || t.Capital() || Digit(t.Low) || at+1 >= len(ts) {
		return lx.Is(t, Given) && t.Word
	}
	if lx.Is(t, Given) {
		return true
	}
	next := ts[at+1]
	verb := lx.Third[next.Low] != "" && !lx.Is(next, Be|Auxiliary|Preposition)
	return verb && lx.Words[t.Low] == 0 && lx.Third[t.Low] == "" && !strings.HasSuffix(t.Low, "ing") && !strings.HasSuffix(t.Low, "ly") && !strings.HasSuffix(t.Low, "s")
}

// IsCopula reports whether the "'s" at i stands for "is" ("my wife's a lawyer",
// "my sister's getting married") rather than for a possessive.
func (lx *Grammar) IsCopula(ts []Token, i int) bool {
	next := ts[i+1]
	switch {
	case lx.Is(next, Article|Preposition|Negator):
		return true
	case lx.IsNumber(next.Low) && !ordinal(next.Low) && (i+2 == len(ts) || !ts[i+2].Word || lx.Is(ts[i+2], And|Joint|Preposition|Tail)):
		return true // "my son's six"
	case i+2 == len(ts) && i > 0:
		return true // "my mom's American"
	case strings.HasSuffix(next.Low, "ing") && !next.Capital():
		finite := i+2 < len(ts) && (lx.Is(ts[i+2], Be) || lx.Third[ts[i+2].Low] != "" && strings.HasSuffix(ts[i+2].Low, "s"))
		return !finite
	}
	return false
}
