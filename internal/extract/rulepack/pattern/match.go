package pattern

import (
	"slices"
	"strings"

	"palimpsest/internal/extract/rulepack/grammar"
)

// Flags is what was skipped on the way of a match.
type Flags uint8

// The kinds of words that may stand between the words of a pattern.
const (
	Negated Flags = 1 << iota // "do not", "never"
	Ended                     // "no longer", "any more"
	Hedged                    // "might", "maybe"
	Past                      // "used to"
	Greeted                   // "hi" stood before
)

// Match is where a pattern matched.
type Match struct {
	Tokens   []grammar.Token // of the clause
	slots    []string
	Captured []grammar.Span // in the order of the pattern's captures
	End      int            // of the match, in tokens
	Flags    Flags
}

// Get returns the tokens of a capture.
func (m *Match) Get(name string) []grammar.Token {
	for i, s := range m.slots {
		if s == name {
			return m.Tokens[m.Captured[i].From:m.Captured[i].To]
		}
	}
	return nil
}

// machine runs programs over one clause, backtracking.
type machine struct {
	lx       *grammar.Grammar
	ts       []grammar.Token
	code     []instruction
	list     bool
	captured []grammar.Span
	steps    int
	end      int
	flags    Flags
	// memo is shared by all patterns that are tried on the clause.
	memo *Memo
}

// Bounds of backtracking: the duration of a match depends on the text, and the text is
// untrusted. The rest of a clause or a text that reaches its bound is not read.
const (
	maxSteps    = 4000    // of a pattern at a token
	clauseSteps = 60_000  // of all patterns on a clause
	TextSteps   = 600_000 // of all clauses of a text
)

// LongestClause bounds, in tokens, the part of a clause that is read.
const LongestClause = 400

// Match matches the pattern from token at; nil if it does not. mo is that of ts.
func (p *Pattern) Match(lx *grammar.Grammar, ts []grammar.Token, mo *Memo, at int, f Flags) *Match {
	m := machine{lx: lx, ts: ts, code: p.code, list: p.list, memo: mo}
	if n := len(p.Slots); n > 0 {
		if cap(mo.spans) < n {
			mo.spans = make([]grammar.Span, n, 2*n)
		}
		m.captured = mo.spans[:n]
		clear(m.captured)
	}
	if !m.step(0, at, f) {
		return nil
	}
	return &Match{Tokens: ts, slots: p.Slots, Captured: slices.Clone(m.captured), End: m.end, Flags: m.flags}
}

func (m *machine) step(pc, at int, f Flags) bool {
	if m.steps++; m.steps > maxSteps || m.memo.clause <= 0 || *m.memo.text <= 0 {
		return false
	}
	m.memo.clause--
	*m.memo.text--
	switch in := &m.code[pc]; in.op {
	case opWord:
		if at < len(m.ts) && m.ts[at].Low == in.word && !m.ts[at].Quoted && m.step(pc+1, at+1, f) {
			return true
		}
		n, g := m.memo.Skip(m.lx, at)
		return n > 0 && m.step(pc, at+n, f|g)
	case opSet:
		for _, words := range m.alternatives(in.set, at) {
			if m.step(pc+1, at+len(words), f) {
				return true
			}
		}
		n, g := m.memo.Skip(m.lx, at)
		return n > 0 && m.step(pc, at+n, f|g)
	case opSplit:
		return m.step(pc+1, at, f) || m.step(in.to, at, f)
	case opJump:
		return m.step(in.to, at, f)
	case opGreeted:
		return f&Greeted != 0 && m.step(pc+1, at, f)
	case opCapture:
		if m.capture(in, pc, at, f) {
			return true
		}
		n, g := m.memo.Skip(m.lx, at)
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

func (m *machine) alternatives(set grammar.Phrases, at int) [][]string {
	if at >= len(m.ts) {
		return nil
	}
	var out [][]string
	for _, words := range set[m.ts[at].Low] {
		if grammar.HasWords(m.ts[at:], words) {
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
	case lx.BindsName(m.ts, at):
		return false
	case lx.Tails.At(m.ts, at) > 0 || m.hedgedEnd(at) || lx.Ended.At(m.ts, at) > 0 || lx.Is(t, grammar.Stop), typ != capRest && m.memo.date(m.lx) == at:
		return true
	case m.list && at+1 < len(m.ts) && (t.Low == "," || lx.Is(t, grammar.And)) && (lx.Is(m.ts[at+1], grammar.And) || !lx.Is(m.ts[at+1], grammar.Stop|grammar.Speaker|grammar.Other|grammar.Joint)):
		return false
	case !t.Word:
		return t.Low != "'" && t.Low != "%"
	case at > 0 && strings.HasSuffix(t.Low, "ing") && m.ts[at-1].Capital() && !t.Capital() && at+1 < len(m.ts) && lx.Is(m.ts[at+1], grammar.Preposition):
		return true // "from Naples living in Berlin", unlike "a Brother knitting machine"
	case t.Low == "'s":
		return false
	case lx.Is(t, grammar.Preposition):
		return !typ.phrasal() && (typ != capPlace || !lx.Is(t, grammar.Locative))
	}
	return lx.Is(t, grammar.Joint) && (!typ.phrasal() || typ == capGerund || !lx.Is(t, grammar.And))
}

// hedgedEnd reports whether the clause ends in a hedge at token at: "i like it there
// apparently".
func (m *machine) hedgedEnd(at int) bool {
	if at >= len(m.ts) || m.lx.Is(m.ts[at], grammar.Auxiliary) { // "on the 9th of May"
		return false
	}
	n := m.lx.Hedges.At(m.ts, at)
	return n > 0 && at+n == len(m.ts)
}

// tail looks for "any more" and a hedge behind a match.
func (m *machine) tail(at int) (f Flags) {
	if m.hedgedEnd(at) {
		f |= Hedged
	}
	for i := at; i < len(m.ts) && i < at+4 && m.ts[i].Low != ","; i++ {
		if m.lx.EndedAt(m.ts, i) > 0 {
			f |= Ended
		}
	}
	for i := max(0, at-3); i < at; i++ {
		if m.lx.EndedAt(m.ts, i) > 0 {
			f |= Ended
		}
	}
	return f
}

// capture tries each length, shortest first; the rest of the pattern must match.
func (m *machine) capture(in *instruction, pc, at int, f Flags) bool {
	try := func(to int) bool {
		old := m.captured[in.slot]
		m.captured[in.slot] = grammar.Span{From: at, To: to}
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
		return at < len(m.ts) && in.set.Suffixed(m.ts[at].Low) && !m.lx.Is(m.ts[at], grammar.Filler|grammar.Stop) && try(at+1)
	case capWord:
		return at < len(m.ts) && m.ts[at].Word && !m.lx.Is(m.ts[at], grammar.Empty) && try(at+1)
	case capMail:
		return at < len(m.ts) && strings.Contains(m.ts[at].Low, "@") && grammar.AddressLen(m.ts[at].Low) > 0 && !strings.Contains(m.ts[at].Low, "://") && try(at+1)
	case capNumber:
		return at < len(m.ts) && m.lx.IsNumber(m.ts[at].Low) && try(at+1)
	case capDigits:
		to := at
		for to < len(m.ts) && (grammar.Digit(m.ts[to].Low) || strings.HasPrefix(m.ts[to].Low, "+") || m.ts[to].Low == "-" || m.ts[to].Low == "(" || m.ts[to].Low == ")") {
			to++
		}
		return to > at && try(to)
	case capWhen:
		return m.memo.date(m.lx) == at && at < len(m.ts) && try(m.memo.dated.To)
	case capMoney:
		n := m.lx.Amount(m.ts, at)
		return n > 0 && try(at+n)
	case capAll:
		return at < len(m.ts) && m.ts[at].Word && !m.lx.Is(m.ts[at], grammar.Speaker|grammar.Other|grammar.Negator|grammar.Joint) && (!m.lx.Is(m.ts[at], grammar.Empty) || m.lx.Is(m.ts[at], grammar.Article)) && m.filled(at, len(m.ts)) && try(len(m.ts))
	case capName, capAnyName:
		for to := at + m.lx.NameLen(m.ts, at, in.typ == capAnyName); to > at; to-- {
			if try(to) {
				return true
			}
		}
		return false
	}
	if in.typ == capGerund && (at == len(m.ts) || len(m.ts[at].Low) < 5 || !strings.HasSuffix(m.ts[at].Low, "ing")) {
		return false
	}
	if (in.typ == capNoun || in.typ == capPlace) && m.memo.date(m.lx) <= at && at < m.memo.dated.To {
		return false
	}
	const most = 14
	for to := at + 1; to <= len(m.ts) && to <= at+most; to++ {
		if !m.takes(in.typ, at, to-1) {
			return false
		}
		if m.filled(at, to) && (in.typ != capEnds || in.set.EndOf(m.ts[at:to])) && try(to) {
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
	case t.Quoted:
		return true
	case !t.Word && t.Low != "'s":
		return t.Low == "," || t.Low == "'" || t.Low == "$" || t.Low == "%" || t.Low == "&"
	case lx.BindsName(m.ts, i):
		return true
	case lx.Is(t, grammar.Stop), typ == capEnds && i > from && lx.Is(t, grammar.Own):
		return false
	case typ == capEnds && i > from && m.ts[i-1].Word && !lx.Is(m.ts[i-1], grammar.And) && lx.Is(t, grammar.Article) && t.Low != "'s":
		return false
	case lx.Is(t, grammar.Negator) && i == from, lx.Is(t, grammar.Speaker|grammar.Other) && i == from:
		return false
	case (typ == capNoun || typ == capEnds) && lx.Is(t, grammar.Preposition), typ == capPlace && lx.Is(t, grammar.Preposition) && !lx.Is(t, grammar.Locative):
		return false
	}
	return true
}

// filled reports whether the tokens say something besides closed words.
func (m *machine) filled(from, to int) bool {
	for _, t := range m.ts[from:to] {
		if t.Word && (t.Quoted || !m.lx.Is(t, grammar.Empty|grammar.Article|grammar.Filler|grammar.Tail|grammar.Preposition|grammar.Joint|grammar.Own)) {
			return true
		}
	}
	return false
}
