package rulepack

import (
	"maps"
	"slices"

	"palimpsest/internal/extract/rulepack/grammar"
	"palimpsest/internal/extract/rulepack/pattern"
	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// heard is a match and where its drafts begin.
type heard struct {
	m      *pattern.Match
	about  *person
	drafts int
}

// denied reads "No, Leipzig." after "You live in Berlin?", and "Wait, no, Bath." after
// what the text itself says. done means that the sentence says nothing else.
func (r *reading) denied(s grammar.Sentence) (done bool) {
	const longest = 8
	lx := r.l.lx
	ts := s.Tokens
	if s.Asks || len(ts) < 2 || !lx.No[ts[0].Low] && lx.Retracts.At(ts, 0) == 0 {
		return false
	}
	ts, _ = r.l.enter(ts[lx.Retracts.At(ts, 0):])
	whole := true
	if i := slices.IndexFunc(ts, func(t grammar.Token) bool { return t.Low == "," }); i > 0 && i+1 < len(ts) && lx.Is(ts[i+1], grammar.Speaker) {
		ts, whole = ts[:i], false
	}
	for len(ts) > 0 && lx.Is(ts[0], grammar.Preposition) {
		ts = ts[1:]
	}
	value, old := lx.Contrast(ts)
	if len(value) == 0 || len(ts) > longest || slices.ContainsFunc(value, func(t grammar.Token) bool {
		return lx.Is(t, grammar.Speaker|grammar.Own|grammar.Other|grammar.Verb|grammar.Be|grammar.Empty|grammar.Hearer|grammar.Auxiliary|grammar.Negator)
	}) {
		return false
	}
	if r.last.m != nil {
		return r.amended(value, old, s.Tokens) && whole
	}
	return r.revise(value, old, s.Tokens) && whole
}

// amended reads the last match again with another value.
func (r *reading) amended(value, old, full []grammar.Token) bool {
	last := r.last
	if last.m == nil || last.drafts >= len(r.drafts) {
		return false
	}
	said := substituted(last.m, value, old)
	if said == nil {
		return false
	}
	maps.DeleteFunc(r.seen, func(_ events.Triple, i int) bool { return i >= last.drafts })
	r.drafts = r.drafts[:last.drafts]
	return r.match(&statement{about: last.about}, full, said, 0, 0)
}

// corrects reads "i meant Malaga[, not Madrid]".
func (r *reading) corrects(ts, full []grammar.Token) bool {
	lx := r.l.lx
	for len(ts) > 1 && lx.Is(ts[0], grammar.Filler) {
		ts = ts[1:]
	}
	n := lx.Corrects.At(ts, 0)
	if n == 0 || n == len(ts) {
		return false
	}
	value, old := lx.Contrast(ts[n:])
	if len(value) == 0 || len(old) == 0 && lx.Is(ts[0], grammar.Other) || lx.Is(value[0], grammar.Article) && value[0].Low == "to" {
		return false
	}
	return r.amended(value, old, full) || r.revise(value, old, full)
}

// revise finds the newest clause of the earlier turns that has the old value, and
// reads it again with the new one. Without an old value, it takes the last clause
// of the turn before.
func (r *reading) revise(value, old, full []grammar.Token) bool {
	for i := len(r.before) - 1; i >= 0; i-- {
		e := r.before[i]
		if e.Mode == events.ModeIncognito {
			continue
		}
		cs := r.l.lx.Clauses(r.l.lx.Sentences(r.l.lx.Tokenize(blank(e.Content))))
		for j := len(cs) - 1; j >= 0; j-- {
			if r.again(e, cs[j], value, old, full) {
				return true
			}
		}
		if len(old) == 0 {
			return false // a value without an old one corrects only the turn before
		}
	}
	return false
}

func (r *reading) again(e memory.Episode, c grammar.Clause, value, old, full []grammar.Token) bool {
	if c.Unreal || c.Reported || c.Question && e.Role == events.RoleUser {
		return false
	}
	ts, _ := r.l.enter(c.Tokens)
	said := make([]grammar.Token, 0, len(ts))
	for _, t := range ts {
		if to := r.l.lx.Hearer[t.Low]; to != "" && e.Role != events.RoleUser {
			t.Rename(to)
			t.Text = to
		}
		said = append(said, grammar.Token{Low: t.Low, Text: t.Text, Word: t.Word})
	}
	for len(said) > 0 && !r.l.lx.Is(said[0], grammar.Speaker|grammar.Own) {
		said = said[1:] // "great, so", "are" of a question
	}
	if len(said) == 0 {
		return false
	}
	if e.Role != events.RoleUser && len(said) > 1 {
		said = append(said[:1:1], r.l.firstPerson(said[1:])...)
	}
	return r.reread(said, value, old, full)
}

// reread reads tokens with a value in the place of the old one, or of their last
// capture, which ends with it.
func (r *reading) reread(said, value, old, full []grammar.Token) bool {
	accept := func(rule *Rule) bool { return !rule.Silent }
	_, m := r.l.find(said, r.memo(said), 0, 0, accept)
	if m == nil {
		return false
	}
	if said = substituted(m, value, old); said == nil {
		return false
	}
	from := len(r.drafts)
	rule, m := r.l.find(said, r.memo(said), 0, 0, accept)
	if m == nil {
		return false
	}
	r.draft(rule, m, nil, full)
	for i := from; i < len(r.drafts); i++ {
		ends := events.Triple{Subject: r.drafts[i].Subject, Predicate: r.drafts[i].Predicate, Object: grammar.Source(old)}
		if d := &r.drafts[i]; d.Cardinality == events.Many && len(old) > 0 && !slices.Contains(d.Retracts, ends) {
			d.Retracts = append(d.Retracts, ends)
		}
	}
	return len(r.drafts) > from
}

// succeeded reads "it's Porto now" after a clause about the past or an end: "i used to
// live in Lyon", "i no longer drive the Golf". Only a name or number takes the place
// of one: "but it's cold now" is no home.
func (r *reading) succeeded(ts, full []grammar.Token) bool {
	const longest = 4
	lx := r.l.lx
	last := r.last
	if last.m == nil || last.about != nil {
		return false
	}
	n := lx.Nowadays.At(ts, 0)
	value := ts[n:]
	for len(value) > 0 && (!value[len(value)-1].Word || lx.Is(value[len(value)-1], grammar.Filler)) {
		value = value[:len(value)-1]
	}
	for i := range value {
		if k := lx.Nowadays.At(value, i); k > 0 {
			if i+k < len(value) {
				return false
			}
			n, value = n+k, value[:i]
			break
		}
	}
	for len(value) > 0 && lx.Is(value[0], grammar.Article|grammar.Preposition) {
		value = value[1:]
	}
	named := func(t grammar.Token) bool {
		return (t.Capital() || grammar.Digit(t.Low)) && !lx.Is(t, grammar.Speaker|grammar.Stop|grammar.NotName)
	}
	if n == 0 || len(value) == 0 || len(value) > longest || slices.ContainsFunc(value, func(t grammar.Token) bool { return !named(t) }) {
		return false
	}
	said := make([]grammar.Token, 0, len(last.m.Tokens))
	over := false
	for i := 0; i < len(last.m.Tokens); i++ {
		t := last.m.Tokens[i]
		if k := max(lx.Past.At(last.m.Tokens, i), lx.EndedAt(last.m.Tokens, i), lx.Negators.At(last.m.Tokens, i)); k > 0 {
			over = true
			i += k - 1
			continue
		}
		if to := lx.Present[t.Low]; to != "" {
			over = true
			t.Rename(to)
			t.Text = to
		}
		said = append(said, grammar.Token{Low: t.Low, Text: t.Text, Word: t.Word})
	}
	to := len(said)
	for to > 0 && !named(said[to-1]) {
		to--
	}
	from := to
	for from > 0 && named(said[from-1]) {
		from--
	}
	return over && from < to && r.reread(said, value, said[from:to], full)
}

// substituted is what a match read with a value in the place of the old one, or
// of its last capture; nil where the old one is not there.
func substituted(m *pattern.Match, value, old []grammar.Token) []grammar.Token {
	at := grammar.Span{From: -1}
	for i := range m.Tokens {
		if len(old) > 0 && i+len(old) <= len(m.Tokens) && slices.EqualFunc(m.Tokens[i:i+len(old)], old, func(a, b grammar.Token) bool { return a.Low == b.Low }) {
			at = grammar.Span{From: i, To: i + len(old)}
			break
		}
	}
	if len(old) == 0 {
		for _, s := range m.Captured {
			if s.To > s.From && s.From > at.From {
				at = s
			}
		}
	}
	if at.From < 0 {
		return nil
	}
	out := slices.Clone(m.Tokens[:at.From])
	out = append(out, value...)
	return append(out, m.Tokens[at.To:]...)
}
