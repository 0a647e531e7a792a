package rulepack

import (
	"slices"

	"palimpsest/internal/extract/rulepack/grammar"
	"palimpsest/internal/extract/rulepack/pattern"
)

// more reads what else the same verb governs: "i am 6 and allergic to peanuts",
// "i am Katarzyna, 34, from Gdynia".
func (r *reading) more(c *statement, full []grammar.Token, last *Rule, m *pattern.Match, at int) {
	lx := r.l.lx
	shared := at+1 < len(m.Tokens) && lx.Is(m.Tokens[at], grammar.Speaker) && lx.Is(m.Tokens[at+1], grammar.Shared)
	named := !shared && last.Predicate == "name" && lx.Shared != "" && c.about == nil // "Ana here, 34, a nurse"
	if !shared && !named || m.Flags&pattern.Negated != 0 {
		return
	}
	const far = 6
	from := 0
	for i := m.End - 1; i < len(m.Tokens) && i < m.End+far && from == 0; i++ {
		switch {
		case m.Tokens[i].Low == "," || lx.Is(m.Tokens[i], grammar.And):
			from = i + 1
		case (i == m.End-1 || i == m.End) && i > at+2 && lx.Is(m.Tokens[i], grammar.Preposition) && len(last.Retracts) == 0 && !last.Transient && // not "i am happy with Klara", "i am divorced from reality"
			i+1 < len(m.Tokens) && (m.Tokens[i+1].Capital() || m.Tokens[i].Low == lx.Bearing):
			from = i
		}
	}
	for from > 0 && from < len(m.Tokens) && lx.Is(m.Tokens[from], grammar.And|grammar.Filler) {
		from++
	}
	if from == 0 || from >= len(m.Tokens) || lx.Is(m.Tokens[from], grammar.Speaker|grammar.Own|grammar.Other) {
		return
	}
	if w, ok := lx.When(m.Tokens[from:], r.at, "past"); ok && w.Span.From == 0 && lx.Is(m.Tokens[from], grammar.Preposition) {
		return // "i was fitted with a pacemaker in May"
	}
	if t := m.Tokens[from]; c.about != nil && t.Capital() && !lx.Is(t, grammar.NotName) {
		return // "Hugo who is 12, Finn who is 9"
	}
	accept := func(rule *Rule) bool {
		return rule.Predicate != "name" && rule.Confidence > looseConfidence && (!c.Unreal || rule.Unreal) && (c.about == nil || !rule.Self)
	}
	verb := lx.Shared
	if shared {
		verb = m.Tokens[at+1].Low
	}
	said := append(grammar.Virtual(r.l.speakerWord, verb), m.Tokens[from:]...)
	rule, next := r.l.find(said, r.memo(said), 0, 0, accept)
	if with := m.Tokens[from].Low == lx.Bearing && from+1 < len(m.Tokens) && lx.IsNumber(m.Tokens[from+1].Low) && !lx.Is(m.Tokens[from+1], grammar.Article); next == nil && (with || lx.IsNumber(m.Tokens[from].Low) && (c.about == nil || !lx.Is(m.Tokens[from], grammar.Article))) && lx.Possess != "" {
		if with {
			said = slices.Delete(said, 2, 3) // "i am divorced with two teenagers"
		}
		said[1].Rename(lx.Possess) // "i am 52, divorced, two kids"
		rule, next = r.l.find(said, r.memo(said), 0, 0, accept)
	}
	if next != nil {
		r.draft(rule, next, c.about, full)
		r.more(c, full, rule, next, 0)
	}
}

// shared reads a clause that no rule reads whole as two with the same subject and verb, of
// different rules: "i have asthma and a bad hip".
func (r *reading) shared(c *statement, full, ts []grammar.Token, f pattern.Flags) bool {
	lx := r.l.lx
	if !lx.Is(ts[0], grammar.Speaker) {
		return false
	}
	const shortest = 3
	for i := shortest; i+1 < len(ts); i++ {
		if ts[i].Low != "," && !lx.Is(ts[i], grammar.And) {
			continue
		}
		at := len(r.drafts)
		if !r.match(c, full, ts[:i], 0, f) || len(r.drafts) == at || r.drafts[at].Confidence <= looseConfidence {
			return false
		}
		for i+2 < len(ts) && lx.Is(ts[i+1], grammar.And) {
			i++
		}
		r.match(c, full, append(slices.Clone(ts[:2]), ts[i+1:]...), 0, f)
		return true
	}
	return false
}

// within drafts what the rules that are tried anywhere find in a clause. What a clause of
// the past names in passing may be gone: "when i lived in Leeds i read in my flat".
func (r *reading) within(full []grammar.Token) {
	ts := full[:min(len(full), pattern.LongestClause)]
	past := slices.ContainsFunc(ts, func(t grammar.Token) bool { return r.l.lx.Present[t.Low] != "" })
	var mo *pattern.Memo
	for i := 0; i < len(ts); i++ {
		for _, n := range r.l.within[ts[i].Low] {
			if mo == nil {
				mo = r.memo(ts)
			}
			rule := r.l.patterns[n].rule
			if past && rule.Category == "possession" {
				continue
			}
			m := r.l.try(r.l.patterns[n], ts, mo, i, 0)
			if m == nil || !slices.ContainsFunc(ts[:m.End], func(t grammar.Token) bool { return r.l.lx.Is(t, grammar.Speaker|grammar.Own) }) {
				continue
			}
			if rule.Silent {
				i = max(i, m.End-1) // the phrase is not read further
			}
			r.draft(rule, m, nil, full)
			break
		}
	}
}

// exclaims reports whether a word before the subject of a statement is a comment on it:
// "weird i have a parrot too".
func exclaims(lx *grammar.Grammar, t grammar.Token) bool {
	const governs = grammar.Verb | grammar.Be | grammar.Auxiliary | grammar.Asking | grammar.Unreal | grammar.Reporting | grammar.Own | grammar.Other | grammar.Theirs | grammar.Negator | grammar.Hedge | grammar.Empty | grammar.Relative
	return t.Word && !t.Capital() && !lx.Is(t, governs)
}
