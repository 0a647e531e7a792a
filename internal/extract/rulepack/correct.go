package rulepack

import (
	"maps"
	"slices"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// heard is a match and where its drafts begin.
type heard struct {
	m      *match
	about  *person
	drafts int
}

// sets reports whether a sentence sets a task whose material follows a colon:
// "translate this: i live in Rome".
func (lx *lexicon) sets(ts []token) bool {
	colon := slices.IndexFunc(ts, func(t token) bool { return t.low == ":" })
	if colon < 0 {
		return false
	}
	if slices.ContainsFunc(ts[:colon], func(t token) bool { return lx.is(t, isDocument) }) {
		return true
	}
	ts = lx.strip(ts)
	return len(ts) > 0 && lx.tasks.at(ts, 0) > 0
}

// denied reads "No, Leipzig." after "You live in Berlin?", and "Wait, no, Bath." after
// what the text itself says. done means that the sentence says nothing else.
func (r *reading) denied(s sentence) (done bool) {
	const longest = 8
	lx := r.l.lx
	ts := s.tokens
	if s.asks || len(ts) < 2 || !lx.no[ts[0].low] && lx.retracts.at(ts, 0) == 0 {
		return false
	}
	ts, _ = r.l.enter(ts[lx.retracts.at(ts, 0):])
	whole := true
	if i := slices.IndexFunc(ts, func(t token) bool { return t.low == "," }); i > 0 && i+1 < len(ts) && lx.is(ts[i+1], isSpeaker) {
		ts, whole = ts[:i], false
	}
	for len(ts) > 0 && lx.is(ts[0], isPreposition) {
		ts = ts[1:]
	}
	value, old := lx.contrast(ts)
	if len(value) == 0 || len(ts) > longest || slices.ContainsFunc(value, func(t token) bool {
		return lx.is(t, isSpeaker|isOwn|isOther|isVerb|isBe|isEmpty|isHearer|isAuxiliary|isNegator)
	}) {
		return false
	}
	if r.last.m != nil {
		return r.amended(value, old, s.tokens) && whole
	}
	return r.revise(value, old, s.tokens) && whole
}

// amended reads the last match again with another value.
func (r *reading) amended(value, old, full []token) bool {
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
func (r *reading) corrects(ts, full []token) bool {
	lx := r.l.lx
	for len(ts) > 1 && lx.is(ts[0], isFiller) {
		ts = ts[1:]
	}
	n := lx.corrects.at(ts, 0)
	if n == 0 || n == len(ts) {
		return false
	}
	value, old := lx.contrast(ts[n:])
	if len(value) == 0 || len(old) == 0 && lx.is(ts[0], isOther) || lx.is(value[0], isArticle) && value[0].low == "to" {
		return false
	}
	return r.amended(value, old, full) || r.revise(value, old, full)
}

// contrast splits "Malaga, not Madrid".
func (lx *lexicon) contrast(ts []token) (value, old []token) {
	for i := range ts {
		if n := lx.notThis.at(ts, i); n > 0 {
			old = ts[i+n:]
			ts = ts[:i]
			break
		}
	}
	for len(ts) > 0 && !ts[len(ts)-1].word {
		ts = ts[:len(ts)-1]
	}
	return ts, old
}

// replaced returns the names or numbers that a sentence contrasts with the ones it
// states: "instead of Corsica", "no more Corsica", ", not Corsica".
func (lx *lexicon) replaced(ts []token) []token {
	for i := range ts {
		n := lx.notThis.at(ts, i)
		from := i + n
		for n > 0 && from < len(ts) && (lx.is(ts[from], isArticle|isPreposition) || lx.is(ts[from], isOwn)) {
			from++
		}
		to := from
		for n > 0 && to < len(ts) && (ts[to].capital() || digit(ts[to].low)) && !lx.is(ts[to], isSpeaker|isStop) {
			to++
		}
		if to > from {
			return ts[from:to]
		}
	}
	return nil
}

// revise finds the newest clause of the earlier turns that has the old value, and
// reads it again with the new one. Without an old value, it takes the last clause
// of the turn before.
func (r *reading) revise(value, old, full []token) bool {
	for i := len(r.before) - 1; i >= 0; i-- {
		e := r.before[i]
		if e.Mode == events.ModeIncognito {
			continue
		}
		cs := r.l.lx.clauses(r.l.lx.sentences(r.l.lx.tokenize(blank(e.Content))))
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

func (r *reading) again(e memory.Episode, c clause, value, old, full []token) bool {
	if c.unreal || c.reported || c.question && e.Role == events.RoleUser {
		return false
	}
	ts, _ := r.l.enter(c.tokens)
	said := make([]token, 0, len(ts))
	for _, t := range ts {
		if to := r.l.lx.hearer[t.low]; to != "" && e.Role != events.RoleUser {
			t.rename(to)
			t.text = to
		}
		said = append(said, token{low: t.low, text: t.text, word: t.word})
	}
	for len(said) > 0 && !r.l.lx.is(said[0], isSpeaker|isOwn) {
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
func (r *reading) reread(said, value, old, full []token) bool {
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
		ends := events.Triple{Subject: r.drafts[i].Subject, Predicate: r.drafts[i].Predicate, Object: source(old)}
		if d := &r.drafts[i]; d.Cardinality == events.Many && len(old) > 0 && !slices.Contains(d.Retracts, ends) {
			d.Retracts = append(d.Retracts, ends)
		}
	}
	return len(r.drafts) > from
}

// succeeded reads "it's Porto now" after a clause about the past or an end: "i used to
// live in Lyon", "i no longer drive the Golf". Only a name or number takes the place
// of one: "but it's cold now" is no home.
func (r *reading) succeeded(ts, full []token) bool {
	const longest = 4
	lx := r.l.lx
	last := r.last
	if last.m == nil || last.about != nil {
		return false
	}
	n := lx.nowadays.at(ts, 0)
	value := ts[n:]
	for len(value) > 0 && (!value[len(value)-1].word || lx.is(value[len(value)-1], isFiller)) {
		value = value[:len(value)-1]
	}
	for i := range value {
		if k := lx.nowadays.at(value, i); k > 0 {
			if i+k < len(value) {
				return false
			}
			n, value = n+k, value[:i]
			break
		}
	}
	for len(value) > 0 && lx.is(value[0], isArticle|isPreposition) {
		value = value[1:]
	}
	named := func(t token) bool { return (t.capital() || digit(t.low)) && !lx.is(t, isSpeaker|isStop|isNotName) }
	if n == 0 || len(value) == 0 || len(value) > longest || slices.ContainsFunc(value, func(t token) bool { return !named(t) }) {
		return false
	}
	said := make([]token, 0, len(last.m.ts))
	over := false
	for i := 0; i < len(last.m.ts); i++ {
		t := last.m.ts[i]
		if k := max(lx.past.at(last.m.ts, i), lx.endedAt(last.m.ts, i), lx.negators.at(last.m.ts, i)); k > 0 {
			over = true
			i += k - 1
			continue
		}
		if to := lx.present[t.low]; to != "" {
			over = true
			t.rename(to)
			t.text = to
		}
		said = append(said, token{low: t.low, text: t.text, word: t.word})
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
func substituted(m *match, value, old []token) []token {
	at := span{from: -1}
	for i := range m.ts {
		if len(old) > 0 && i+len(old) <= len(m.ts) && slices.EqualFunc(m.ts[i:i+len(old)], old, func(a, b token) bool { return a.low == b.low }) {
			at = span{i, i + len(old)}
			break
		}
	}
	if len(old) == 0 {
		for _, s := range m.captured {
			if s.to > s.from && s.from > at.from {
				at = s
			}
		}
	}
	if at.from < 0 {
		return nil
	}
	out := slices.Clone(m.ts[:at.from])
	out = append(out, value...)
	return append(out, m.ts[at.to:]...)
}
