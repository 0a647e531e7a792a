package pattern

import (
	"time"

	"palimpsest/internal/extract/rulepack/grammar"
)

// Memo keeps what depends on the tokens of a clause alone: each of many patterns
// asks for it.
type Memo struct {
	ts    []grammar.Token
	skips []skipped
	// dated is where the first date stands, searched the first time it is asked for.
	dated    grammar.Span
	searched bool
	// spans holds the captures of the pattern that is tried.
	spans []grammar.Span
	// clause and text are the steps left to the clause and to its text.
	clause int
	text   *int
}

// skipped is the answer of [Memo.Skip] at a token.
type skipped struct {
	known bool
	n     int
	flags Flags
}

// NewMemo makes the memo of a clause. text is what is left of the [TextSteps] of its text.
func NewMemo(ts []grammar.Token, text *int) *Memo {
	return &Memo{ts: ts, skips: make([]skipped, len(ts)), clause: clauseSteps, text: text}
}

// Skip passes over a filler, hedge or negation at token at: n tokens.
func (mo *Memo) Skip(lx *grammar.Grammar, at int) (n int, f Flags) {
	if at >= len(mo.ts) || mo.ts[at].Quoted {
		return 0, 0
	}
	s := &mo.skips[at]
	if !s.known {
		s.known = true
		s.n, s.flags = mo.filler(lx, at)
	}
	return s.n, s.flags
}

func (mo *Memo) filler(lx *grammar.Grammar, at int) (n int, f Flags) {
	if n := lx.EndedAt(mo.ts, at); n > 0 {
		return n, Negated | Ended
	}
	if n := lx.Negators.At(mo.ts, at); n > 0 {
		return n, Negated
	}
	if n := lx.Past.At(mo.ts, at); n > 0 {
		return n, Past
	}
	if n := lx.Hedges.At(mo.ts, at); n > 0 {
		return n, Hedged
	}
	if n := lx.Fillers.At(mo.ts, at); n > 0 {
		return n, 0
	}
	if at > 0 && mo.date(lx) == at && mo.dated.To < len(mo.ts) {
		return mo.dated.To - at, 0 // "i moved last week to Bergen"
	}
	return 0, 0
}

// date is where the first date begins, or the end.
func (mo *Memo) date(lx *grammar.Grammar) int {
	if !mo.searched {
		mo.searched, mo.dated = true, grammar.Span{From: len(mo.ts), To: len(mo.ts)}
		if w, ok := lx.When(mo.ts, time.Unix(0, 0).UTC(), "past"); ok {
			mo.dated = w.Span
		}
	}
	return mo.dated.From
}
