package rulepack

import (
	"slices"
	"strings"
	"time"

	"palimpsest/internal/extract/rulepack/grammar"
	"palimpsest/internal/extract/rulepack/pattern"
)

// view is what templates are rendered from.
type view struct {
	l    *language
	who  *person
	m    *pattern.Match
	item string // one item of a list stands for {o}
	raw  []grammar.Token
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
			s = v.l.object(v.m.Get("o"))
		}
	case "v":
		s = lowered(v.l.object(v.m.Get(name))) // a verb, which may open the sentence
	default:
		s = v.l.object(v.m.Get(name))
	}
	switch filter {
	case "third":
		return v.l.third(v.m.Get(name))
	case "full":
		if name == "o" && v.raw != nil {
			return grammar.Source(v.l.echoed(v.raw))
		}
		ts := v.m.Get(name)
		for len(ts) > 1 && v.l.lx.Is(ts[len(ts)-1], grammar.And) {
			ts = ts[:len(ts)-1]
		}
		return grammar.Source(v.l.echoed(ts))
	case "title":
		// A phrase with an article is a description, not a name: "a small village".
		if ts := v.m.Get(name); len(ts) > 1 && v.l.lx.Is(ts[0], grammar.Article|grammar.Own) && strings.ToLower(s) == s {
			return grammar.Source(v.l.echoed(ts))
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

// third renders the verb of the speaker as a third person's: "always carry" as
// "always carries".
func (l *language) third(ts []grammar.Token) string {
	words := strings.Fields(lowered(grammar.Source(ts)))
	for i, w := range words {
		if to := l.lx.ThirdOf[w]; to != "" {
			words[i] = to
			break
		}
	}
	return strings.Join(words, " ")
}

// lowered writes a word that opens a sentence as it stands inside one; "DJ" stays.
func lowered(s string) string {
	if len(s) > 1 && s[0] >= 'A' && s[0] <= 'Z' && (s[1] < 'A' || s[1] > 'Z') {
		return strings.ToLower(s[:1]) + s[1:]
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
func (l *language) object(ts []grammar.Token) string {
	ts = l.trim(ts)
	if len(ts) == 0 {
		return ""
	}
	return grammar.Source(l.echoed(ts))
}

// echoed puts a third person's words for the speaker's.
func (l *language) echoed(ts []grammar.Token) []grammar.Token {
	ts = slices.Clone(ts)
	out := make([]grammar.Token, 0, len(ts))
	for i := 0; i < len(ts); i++ {
		t := ts[i]
		if to, ok := l.lx.Echo[t.Low]; ok && !t.Quoted && (i == 0 || !grammar.Digit(ts[i-1].Low)) { // "3 am"
			t.Text = to
			if i+1 < len(ts) && ts[i+1].Start == t.Start && !t.Virtual() {
				ts[i+1].Text, t.Text = "", to // a contraction: "i'm"
			}
		}
		out = append(out, t)
	}
	return out
}

func (l *language) trim(ts []grammar.Token) []grammar.Token {
	lx := l.lx
	for len(ts) > 0 && (!ts[0].Word && ts[0].Low != "$" || lx.Is(ts[0], grammar.Article) || lx.Fillers.At(ts, 0) == 1 && len(ts) > 1) {
		ts = ts[1:]
	}
	for len(ts) > 0 {
		last := ts[len(ts)-1]
		if last.Low == "'s" && len(ts) > 1 && ts[len(ts)-2].Capital() {
			break // "St. Brendan's"
		}
		if last.Quoted || last.Word && !lx.Is(last, grammar.Tail|grammar.Joint|grammar.Preposition|grammar.Article|grammar.Lead) && last.Low != "'s" || last.Low == "%" {
			break
		}
		ts = ts[:len(ts)-1]
	}
	for i := 1; i < len(ts); i++ {
		if n := lx.Tails.At(ts, i); n > 1 && i+n == len(ts) {
			return l.trim(ts[:i])
		}
	}
	return ts
}

// items splits a list at commas and conjunctions.
func (l *language) items(ts []grammar.Token) [][]grammar.Token {
	var out [][]grammar.Token
	from := 0
	for i := 0; i <= len(ts); i++ {
		if i < len(ts) && (ts[i].Low != "," && !l.lx.Is(ts[i], grammar.And) || i > 0 && l.lx.Pairs.At(ts, i-1) > 0) {
			continue
		}
		item := ts[from:i]
		from = i + 1
		if len(out) > 0 && len(item) > 1 && (l.lx.Is(item[0], grammar.Negator) || l.lx.Only[item[0].Low]) || len(out) > 0 && l.remark(ts, item) {
			break // "coffee, only tea"
		}
		if bare := l.trim(item); len(bare) == 0 || len(bare) == 1 && l.lx.Is(bare[0], grammar.Empty|grammar.Lead|grammar.Filler|grammar.Tail) {
			continue
		}
		out = append(out, item)
	}
	return out
}

// remark reports whether an item of a list without a conjunction says more of the one
// before it: "shellfish, the swelling-up kind", "olives, never could", "Björk, saw her".
func (l *language) remark(list, item []grammar.Token) bool {
	if len(item) == 0 || slices.ContainsFunc(list, func(t grammar.Token) bool { return l.lx.Is(t, grammar.And) }) {
		return false
	}
	first, last := item[0], item[len(item)-1]
	return l.lx.Is(first, grammar.Negator|grammar.Article) || l.lx.Is(first, grammar.Verb) && !first.Capital() && !strings.HasSuffix(first.Low, "ing") || l.lx.Third[first.Low] == first.Low ||
		len(item) > 1 && l.lx.Is(last, grammar.Filler|grammar.Empty)
}

// evidence is the text that the tokens span, without conjunctions and marks at
// its end.
func (l *language) evidence(text string, ts []grammar.Token) string {
	for n := len(ts) - 1; n > 0 && !ts[n].Quoted && (!ts[n].Word || l.lx.Is(ts[n], grammar.Joint)); n-- {
		ts = ts[:n]
	}
	from, to := -1, -1
	for _, t := range ts {
		if t.Virtual() {
			continue
		}
		if from < 0 || t.Start < from {
			from = t.Start
		}
		to = max(to, t.End)
	}
	if from < 0 {
		return ""
	}
	return text[from:to]
}
