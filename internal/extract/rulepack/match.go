package rulepack

import (
	"slices"
	"strings"
)

// flags is what was skipped on the way of a match.
type flags uint8

const (
	flagNegated flags = 1 << iota // "do not", "never"
	flagEnded                     // "no longer", "any more"
	flagHedged                    // "might", "maybe"
	flagPast                      // "used to"
	flagGreeted                   // "hi" stood before
)

// span is a half-open range of tokens.
type span struct{ from, to int }

// match is where a pattern matched.
type match struct {
	ts       []token
	slots    []string
	captured []span
	end      int
	flags    flags
}

// get returns the tokens of a capture.
func (m *match) get(name string) []token {
	for i, s := range m.slots {
		if s == name {
			return m.ts[m.captured[i].from:m.captured[i].to]
		}
	}
	return nil
}

// machine runs programs over one clause, backtracking.
type machine struct {
	lx       *lexicon
	ts       []token
	code     []instruction
	list     bool
	captured []span
	steps    int
	end      int
	flags    flags
	// memo is shared by all patterns that are tried on the clause.
	memo *memo
}

// Bounds of backtracking: the duration of a match depends on the text, and the text is
// untrusted. The rest of a clause or a text that reaches its bound is not read.
const (
	maxSteps    = 4000    // of a pattern at a token
	clauseSteps = 60_000  // of all patterns on a clause
	textSteps   = 600_000 // of all clauses of a text
)

// longestClause bounds, in tokens, the part of a clause that is read.
const longestClause = 400

// run matches the pattern from token at; nil if it does not. mo is that of ts.
func (p *program) run(lx *lexicon, ts []token, mo *memo, at int, f flags) *match {
	m := machine{lx: lx, ts: ts, code: p.code, list: p.list, memo: mo}
	if n := len(p.slots); n > 0 {
		if cap(mo.spans) < n {
			mo.spans = make([]span, n, 2*n)
		}
		m.captured = mo.spans[:n]
		clear(m.captured)
	}
	if !m.step(0, at, f) {
		return nil
	}
	return &match{ts: ts, slots: p.slots, captured: slices.Clone(m.captured), end: m.end, flags: m.flags}
}

func (m *machine) step(pc, at int, f flags) bool {
	if m.steps++; m.steps > maxSteps || m.memo.clause <= 0 || *m.memo.text <= 0 {
		return false
	}
	m.memo.clause--
	*m.memo.text--
	switch in := &m.code[pc]; in.op {
	case opWord:
		if at < len(m.ts) && m.ts[at].low == in.word && !m.ts[at].quoted && m.step(pc+1, at+1, f) {
			return true
		}
		n, g := m.memo.skip(m.lx, at)
		return n > 0 && m.step(pc, at+n, f|g)
	case opSet:
		for _, words := range m.alternatives(in.set, at) {
			if m.step(pc+1, at+len(words), f) {
				return true
			}
		}
		n, g := m.memo.skip(m.lx, at)
		return n > 0 && m.step(pc, at+n, f|g)
	case opSplit:
		return m.step(pc+1, at, f) || m.step(in.to, at, f)
	case opJump:
		return m.step(in.to, at, f)
	case opGreeted:
		return f&flagGreeted != 0 && m.step(pc+1, at, f)
	case opCapture:
		if m.capture(in, pc, at, f) {
			return true
		}
		n, g := m.memo.skip(m.lx, at)
		return n > 0 && m.step(pc, at+n, f|g)
	case opStop:
		if at < len(m.ts) && !m.stops(at, in.typ) {
			return false
		}
		return m.step(pc+1, at, f)
	default:
		m.end, m.flags = at, f|m.tail(at)
		return true
	}
}

func (m *machine) alternatives(set phrases, at int) [][]string {
	if at >= len(m.ts) {
		return nil
	}
	var out [][]string
	for _, words := range set[m.ts[at].low] {
		if hasWords(m.ts[at:], words) {
			out = append(out, words)
		}
	}
	return out
}

// stops reports whether a capture of that type may end before token at.
func (m *machine) stops(at int, typ captureType) bool {
	t := m.ts[at]
	lx := m.lx
	switch {
	case lx.bindsName(m.ts, at):
		return false
	case lx.tails.at(m.ts, at) > 0 || m.hedgedEnd(at) || lx.ended.at(m.ts, at) > 0 || lx.is(t, isStop), typ != capRest && m.memo.date(m.lx) == at:
		return true
	case m.list && at+1 < len(m.ts) && (t.low == "," || lx.is(t, isAnd)) && (lx.is(m.ts[at+1], isAnd) || !lx.is(m.ts[at+1], isStop|isSpeaker|isOther|isJoint)):
		return false
	case !t.word:
		return t.low != "'" && t.low != "%"
	case at > 0 && strings.HasSuffix(t.low, "ing") && m.ts[at-1].capital() && !t.capital() && at+1 < len(m.ts) && lx.is(m.ts[at+1], isPreposition):
		return true // "from Naples living in Berlin", unlike "a Brother knitting machine"
	case t.low == "'s":
		return false
	case lx.is(t, isPreposition):
		return !typ.phrasal() && (typ != capPlace || !lx.is(t, isLocative))
	}
	return lx.is(t, isJoint) && (!typ.phrasal() || typ == capGerund || !lx.is(t, isAnd))
}

// hedgedEnd reports whether the clause ends in a hedge at token at: "i like it there
// apparently".
func (m *machine) hedgedEnd(at int) bool {
	if at >= len(m.ts) || m.lx.is(m.ts[at], isAuxiliary) { // "on the 9th of May"
		return false
	}
	n := m.lx.hedges.at(m.ts, at)
	return n > 0 && at+n == len(m.ts)
}

// tail looks for "any more" and a hedge behind a match.
func (m *machine) tail(at int) (f flags) {
	if m.hedgedEnd(at) {
		f |= flagHedged
	}
	for i := at; i < len(m.ts) && i < at+4 && m.ts[i].low != ","; i++ {
		if m.lx.endedAt(m.ts, i) > 0 {
			f |= flagEnded
		}
	}
	for i := max(0, at-3); i < at; i++ {
		if m.lx.endedAt(m.ts, i) > 0 {
			f |= flagEnded
		}
	}
	return f
}

// capture tries each length, shortest first; the rest of the pattern must match.
func (m *machine) capture(in *instruction, pc, at int, f flags) bool {
	try := func(to int) bool {
		old := m.captured[in.slot]
		m.captured[in.slot] = span{at, to}
		if m.step(pc+1, to, f) {
			return true
		}
		m.captured[in.slot] = old
		return false
	}
	switch in.typ {
	case capSet:
		for _, words := range m.alternatives(in.set, at) {
			if try(at + len(words)) {
				return true
			}
		}
		return at < len(m.ts) && in.set.suffixed(m.ts[at].low) && !m.lx.is(m.ts[at], isFiller|isStop) && try(at+1)
	case capWord:
		return at < len(m.ts) && m.ts[at].word && !m.lx.is(m.ts[at], isEmpty) && try(at+1)
	case capNumber:
		return at < len(m.ts) && m.lx.isNumber(m.ts[at].low) && try(at+1)
	case capDigits:
		to := at
		for to < len(m.ts) && (digit(m.ts[to].low) || strings.HasPrefix(m.ts[to].low, "+") || m.ts[to].low == "-" || m.ts[to].low == "(" || m.ts[to].low == ")") {
			to++
		}
		return to > at && try(to)
	case capWhen:
		return m.memo.date(m.lx) == at && at < len(m.ts) && try(m.memo.dated.to)
	case capMoney:
		n := m.lx.amount(m.ts, at)
		return n > 0 && try(at+n)
	case capAll:
		return at < len(m.ts) && m.ts[at].word && !m.lx.is(m.ts[at], isSpeaker|isOther|isNegator|isJoint) && (!m.lx.is(m.ts[at], isEmpty) || m.lx.is(m.ts[at], isArticle)) && m.filled(at, len(m.ts)) && try(len(m.ts))
	case capName, capAnyName:
		for to := at + m.lx.nameLen(m.ts, at, in.typ == capAnyName); to > at; to-- {
			if try(to) {
				return true
			}
		}
		return false
	}
	if in.typ == capGerund && (at == len(m.ts) || len(m.ts[at].low) < 5 || !strings.HasSuffix(m.ts[at].low, "ing")) {
		return false
	}
	if (in.typ == capNoun || in.typ == capPlace) && m.memo.date(m.lx) <= at && at < m.memo.dated.to {
		return false
	}
	const most = 14
	for to := at + 1; to <= len(m.ts) && to <= at+most; to++ {
		if !m.takes(in.typ, at, to-1) {
			return false
		}
		if m.filled(at, to) && (in.typ != capEnds || in.set.endOf(m.ts[at:to])) && try(to) {
			return true
		}
	}
	return false
}

// takes reports whether a capture that began at from may hold token i.
func (m *machine) takes(typ captureType, from, i int) bool {
	t := m.ts[i]
	lx := m.lx
	switch {
	case t.quoted:
		return true
	case !t.word && t.low != "'s":
		return t.low == "," || t.low == "'" || t.low == "$" || t.low == "%" || t.low == "&"
	case lx.bindsName(m.ts, i):
		return true
	case lx.is(t, isStop), typ == capEnds && i > from && lx.is(t, isOwn):
		return false
	case typ == capEnds && i > from && m.ts[i-1].word && !lx.is(m.ts[i-1], isAnd) && lx.is(t, isArticle) && t.low != "'s":
		return false
	case lx.is(t, isNegator) && i == from, lx.is(t, isSpeaker|isOther) && i == from:
		return false
	case (typ == capNoun || typ == capEnds) && lx.is(t, isPreposition), typ == capPlace && lx.is(t, isPreposition) && !lx.is(t, isLocative):
		return false
	}
	return true
}

// filled reports whether the tokens say something besides closed words.
func (m *machine) filled(from, to int) bool {
	for _, t := range m.ts[from:to] {
		if t.word && (t.quoted || !m.lx.is(t, isEmpty|isArticle|isFiller|isTail|isPreposition|isJoint|isOwn)) {
			return true
		}
	}
	return false
}

// bindsName reports whether the word at i joins the parts of a name: "Banco do Sul".
func (lx *lexicon) bindsName(ts []token, i int) bool {
	return i > 0 && lx.is(ts[i], isParticle) && ts[i-1].capital() && !ts[i-1].virtual() && !lx.is(ts[i-1], isSpeaker) && lx.particles(ts[i:]) == 1
}

// nameLen is how many tokens at and after at are a name.
func (lx *lexicon) nameLen(ts []token, at int, anyCase bool) int {
	n := 0
	for i := at; i < len(ts) && n < 4; i++ {
		t := ts[i]
		if k := lx.particles(ts[i:]); n > 0 && k > 0 {
			n, i = n+k, i+k-1 // "Maria del Carmen"
			continue
		}
		if !t.word || digit(t.low) || lx.is(t, isNotName) && !(n > 0 && t.capital()) {
			break
		}
		if !t.capital() {
			if n == 0 && anyCase && !lx.is(t, isStop|isEmpty|isFiller|isNegator|isArticle|isPreposition|isLead|isVerb|isOwn|isBe) && !strings.HasSuffix(t.low, "ing") && (!strings.HasSuffix(t.low, "ed") || lx.is(t, isGiven)) {
				return 1
			}
			break
		}
		n++
	}
	return n
}

func (lx *lexicon) isNumber(s string) bool {
	if digit(s) {
		return true
	}
	tens, ones, compound := strings.Cut(s, "-")
	_, ok := lx.calendar.Numbers[tens]
	if compound && ok {
		_, ok = lx.calendar.Numbers[ones]
	}
	return ok
}
