package rulepack

import (
	"slices"
	"strings"
	"time"
)

// view is what templates are rendered from.
type view struct {
	l    *language
	who  *person
	m    *match
	item string // one item of a list stands for {o}
	raw  []token
	obj  string // the rendered object, for {O}
	when time.Time
	old  string // what the sentence contrasts with {o}
}

// render fills in a template. Parts in brackets vanish where a name in them has
// no value; ok is false where a name outside brackets has none.
func (v *view) render(tpl string) (out string, ok bool) {
	var b strings.Builder
	for tpl != "" {
		open := strings.IndexByte(tpl, '[')
		end := strings.IndexByte(tpl, ']')
		if open < 0 || end < open {
			part, ok := v.fill(tpl)
			b.WriteString(part)
			return strings.TrimSpace(b.String()), ok && b.Len() > 0
		}
		before, ok := v.fill(tpl[:open])
		if !ok {
			return "", false
		}
		b.WriteString(before)
		if part, ok := v.fill(tpl[open+1 : end]); ok {
			b.WriteString(part)
		}
		tpl = tpl[end+1:]
	}
	return strings.TrimSpace(b.String()), b.Len() > 0
}

func (v *view) fill(tpl string) (string, bool) {
	var b strings.Builder
	for {
		before, after, ok := strings.Cut(tpl, "{")
		b.WriteString(before)
		if !ok {
			return b.String(), true
		}
		name, rest, _ := strings.Cut(after, "}")
		value := v.value(name)
		if value == "" {
			return "", false
		}
		b.WriteString(value)
		tpl = rest
	}
}

func (v *view) value(name string) string {
	name, filter, _ := strings.Cut(name, "|")
	var s string
	switch name {
	case "S":
		return v.who.nominative(v.l.lx)
	case "S's":
		return v.who.possessive(v.l.lx)
	case "O":
		return v.obj
	case "when":
		if !v.when.IsZero() {
			s = v.when.Format(time.DateOnly)
		}
	case "old":
		s = v.old
	case "o":
		if s = v.item; s == "" {
			s = v.l.object(v.m.get("o"))
		}
	default:
		s = v.l.object(v.m.get(name))
	}
	switch filter {
	case "full":
		if name == "o" && v.raw != nil {
			return source(v.l.echoed(v.raw))
		}
		ts := v.m.get(name)
		for len(ts) > 1 && v.l.lx.is(ts[len(ts)-1], isAnd) {
			ts = ts[:len(ts)-1]
		}
		return source(v.l.echoed(ts))
	case "title":
		// A phrase with an article is a description, not a name: "a small village".
		if ts := v.m.get(name); len(ts) > 1 && v.l.lx.is(ts[0], isArticle|isOwn) && strings.ToLower(s) == s {
			return source(v.l.echoed(ts))
		}
		return title(s)
	case "a":
		return withArticle(s)
	case "key":
		return strings.Join(strings.Fields(strings.ToLower(s)), "_")
	case "relation":
		if rel, _ := v.l.relationIn(s); rel != nil {
			return rel.Predicate
		}
		return ""
	case "low":
		return strings.ToLower(s)
	}
	return s
}

func withArticle(s string) string {
	if s == "" || s[0] >= 'A' && s[0] <= 'Z' && strings.ToUpper(s) == s {
		return s
	}
	for _, head := range [...]string{"head ", "chief ", "vice ", "director of"} {
		if strings.HasPrefix(s, head) {
			return s
		}
	}
	if first, _, _ := strings.Cut(s, " "); strings.HasSuffix(first, "ing") {
		return s
	}
	if strings.ContainsRune("aeiouAEIOU", rune(s[0])) {
		return "an " + s
	}
	return "a " + s
}

// object renders captured tokens: articles in front and words that add nothing
// behind are cut, and the speaker's "my" becomes "their".
func (l *language) object(ts []token) string {
	ts = l.trim(ts)
	if len(ts) == 0 {
		return ""
	}
	return source(l.echoed(ts))
}

// echoed puts a third person's words for the speaker's.
func (l *language) echoed(ts []token) []token {
	ts = slices.Clone(ts)
	out := make([]token, 0, len(ts))
	for i := 0; i < len(ts); i++ {
		t := ts[i]
		if to, ok := l.lx.echo[t.low]; ok && !t.quoted && (i == 0 || !digit(ts[i-1].low)) { // "3 am"
			t.text = to
			if i+1 < len(ts) && ts[i+1].start == t.start && !t.virtual() {
				ts[i+1].text, t.text = "", to // a contraction: "i'm"
			}
		}
		out = append(out, t)
	}
	return out
}

func (l *language) trim(ts []token) []token {
	lx := l.lx
	for len(ts) > 0 && (!ts[0].word && ts[0].low != "$" || lx.is(ts[0], isArticle) || lx.fillers.at(ts, 0) == 1 && len(ts) > 1) {
		ts = ts[1:]
	}
	for len(ts) > 0 {
		last := ts[len(ts)-1]
		if last.low == "'s" && len(ts) > 1 && ts[len(ts)-2].capital() {
			break // "St. Brendan's"
		}
		if last.quoted || last.word && !lx.is(last, isTail|isJoint|isPreposition|isArticle|isLead) && last.low != "'s" || last.low == "%" {
			break
		}
		ts = ts[:len(ts)-1]
	}
	for i := 1; i < len(ts); i++ {
		if n := lx.tails.at(ts, i); n > 1 && i+n == len(ts) {
			return l.trim(ts[:i])
		}
	}
	return ts
}

// items splits a list at commas and conjunctions.
func (l *language) items(ts []token) [][]token {
	var out [][]token
	from := 0
	for i := 0; i <= len(ts); i++ {
		if i < len(ts) && (ts[i].low != "," && !l.lx.is(ts[i], isAnd) || i > 0 && l.lx.pairs.at(ts, i-1) > 0) {
			continue
		}
		item := ts[from:i]
		from = i + 1
		if len(out) > 0 && len(item) > 1 && (l.lx.is(item[0], isNegator) || l.lx.only[item[0].low]) {
			break // "coffee, only tea"
		}
		if bare := l.trim(item); len(bare) == 0 || len(bare) == 1 && l.lx.is(bare[0], isEmpty|isLead|isFiller|isTail) {
			continue
		}
		out = append(out, item)
	}
	return out
}

// evidence is the text that the tokens span, without conjunctions and marks at
// its end.
func (l *language) evidence(text string, ts []token) string {
	for n := len(ts) - 1; n > 0 && !ts[n].quoted && (!ts[n].word || l.lx.is(ts[n], isJoint)); n-- {
		ts = ts[:n]
	}
	from, to := -1, -1
	for _, t := range ts {
		if t.virtual() {
			continue
		}
		if from < 0 || t.start < from {
			from = t.start
		}
		to = max(to, t.end)
	}
	if from < 0 {
		return ""
	}
	return text[from:to]
}
