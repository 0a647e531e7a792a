package rulepack

import "slices"

// more reads what else the same verb governs: "i am 6 and allergic to peanuts",
// "i am Katarzyna, 34, from Gdynia".
func (r *reading) more(c *statement, full []token, last *Rule, m *match, at int) {
	lx := r.l.lx
	shared := at+1 < len(m.ts) && lx.is(m.ts[at], isSpeaker) && lx.is(m.ts[at+1], isShared)
	named := !shared && last.Predicate == "name" && lx.shared != "" && c.about == nil // "Ana here, 34, a nurse"
	if !shared && !named || m.flags&flagNegated != 0 {
		return
	}
	const far = 6
	from := 0
	for i := m.end - 1; i < len(m.ts) && i < m.end+far && from == 0; i++ {
		switch {
		case m.ts[i].low == "," || lx.is(m.ts[i], isAnd):
			from = i + 1
		case (i == m.end-1 || i == m.end) && i > at+2 && lx.is(m.ts[i], isPreposition) && len(last.Retracts) == 0 && !last.Transient && // not "i am happy with Klara", "i am divorced from reality"
			i+1 < len(m.ts) && (m.ts[i+1].capital() || m.ts[i].low == lx.bearing):
			from = i
		}
	}
	for from > 0 && from < len(m.ts) && lx.is(m.ts[from], isAnd|isFiller) {
		from++
	}
	if from == 0 || from >= len(m.ts) || lx.is(m.ts[from], isSpeaker|isOwn|isOther) {
		return
	}
	accept := func(rule *Rule) bool {
		return rule.Predicate != "name" && rule.Confidence > looseConfidence && (!c.unreal || rule.Unreal) && (c.about == nil || !rule.Self)
	}
	verb := lx.shared
	if shared {
		verb = m.ts[at+1].low
	}
	said := append(virtual(r.l.speakerWord, verb), m.ts[from:]...)
	rule, next := r.l.find(said, r.memo(said), 0, 0, accept)
	if with := m.ts[from].low == lx.bearing && from+1 < len(m.ts) && lx.isNumber(m.ts[from+1].low) && !lx.is(m.ts[from+1], isArticle); next == nil && (with || lx.isNumber(m.ts[from].low)) && lx.possess != "" {
		if with {
			said = slices.Delete(said, 2, 3) // "i am divorced with two teenagers"
		}
		said[1].rename(lx.possess) // "i am 52, divorced, two kids"
		rule, next = r.l.find(said, r.memo(said), 0, 0, accept)
	}
	if next != nil {
		r.draft(rule, next, c.about, full)
		r.more(c, full, rule, next, 0)
	}
}

// shared reads a clause that no rule reads whole as two with the same subject and verb, of
// different rules: "i have asthma and a bad hip".
func (r *reading) shared(c *statement, full, ts []token, f flags) bool {
	lx := r.l.lx
	if !lx.is(ts[0], isSpeaker) {
		return false
	}
	const shortest = 3
	for i := shortest; i+1 < len(ts); i++ {
		if ts[i].low != "," && !lx.is(ts[i], isAnd) {
			continue
		}
		at := len(r.drafts)
		if !r.match(c, full, ts[:i], 0, f) || len(r.drafts) == at || r.drafts[at].Confidence <= looseConfidence {
			return false
		}
		for i+2 < len(ts) && lx.is(ts[i+1], isAnd) {
			i++
		}
		r.match(c, full, append(slices.Clone(ts[:2]), ts[i+1:]...), 0, f)
		return true
	}
	return false
}
