package rulepack

import "time"

// memo keeps what depends on the tokens of a clause alone: each of many patterns
// asks for it.
type memo struct {
	ts    []token
	skips []skipped
	// dated is where the first date stands, searched the first time it is asked for.
	dated    span
	searched bool
	// spans holds the captures of the pattern that is tried.
	spans []span
	// clause and text are the steps left to the clause and to its text.
	clause int
	text   *int
}

// skipped is the answer of [memo.skip] at a token.
type skipped struct {
	known bool
	n     int
	flags flags
}

func newMemo(ts []token, text *int) *memo {
	return &memo{ts: ts, skips: make([]skipped, len(ts)), clause: clauseSteps, text: text}
}

func (r *reading) memo(ts []token) *memo { return newMemo(ts, &r.steps) }

// skip passes over a filler, hedge or negation at token at: n tokens.
func (mo *memo) skip(lx *lexicon, at int) (n int, f flags) {
	if at >= len(mo.ts) || mo.ts[at].quoted {
		return 0, 0
	}
	s := &mo.skips[at]
	if !s.known {
		s.known = true
		s.n, s.flags = mo.filler(lx, at)
	}
	return s.n, s.flags
}

func (mo *memo) filler(lx *lexicon, at int) (n int, f flags) {
	if n := lx.endedAt(mo.ts, at); n > 0 {
		return n, flagNegated | flagEnded
	}
	if n := lx.negators.at(mo.ts, at); n > 0 {
		return n, flagNegated
	}
	if n := lx.past.at(mo.ts, at); n > 0 {
		return n, flagPast
	}
	if n := lx.hedges.at(mo.ts, at); n > 0 {
		return n, flagHedged
	}
	if n := lx.fillers.at(mo.ts, at); n > 0 {
		return n, 0
	}
	if at > 0 && mo.date(lx) == at && mo.dated.to < len(mo.ts) {
		return mo.dated.to - at, 0 // "i moved last week to Bergen"
	}
	return 0, 0
}

// date is where the first date begins, or the end.
func (mo *memo) date(lx *lexicon) int {
	if !mo.searched {
		mo.searched, mo.dated = true, span{len(mo.ts), len(mo.ts)}
		if w, ok := lx.when(mo.ts, time.Unix(0, 0).UTC(), "past"); ok {
			mo.dated = w.span
		}
	}
	return mo.dated.from
}
