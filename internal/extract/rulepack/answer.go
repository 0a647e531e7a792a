package rulepack

import "strings"

// question is what was asked in the turn before.
type question struct {
	answer *answer
	m      *match
}

// asked finds the last question of a turn that some answer completes.
func (l *language) asked(text string) *question {
	lx := l.lx
	cs := lx.clauses(lx.sentences(lx.tokenize(text)))
	for i := len(cs) - 1; i >= 0 && i >= len(cs)-4; i-- {
		if !cs[i].question {
			continue
		}
		ts := lx.strip(cs[i].tokens)
		if len(ts) == 0 {
			continue
		}
		mo := newMemo(ts)
		for j := range l.answers {
			for _, p := range l.answers[j].asks {
				if m := lx.run(p, ts, mo, 0, 0); m != nil {
					return &question{answer: &l.answers[j], m: m}
				}
			}
		}
		return nil
	}
	return nil
}

// answer reads a sentence as the answer to a question: "River ice." after "What
// do you study?" reads as "i study river ice".
func (r *reading) answer(s sentence, q *question) {
	const longest = 14 // a longer one is a statement of its own
	lx := r.l.lx
	if s.asks || len(s.tokens) == 0 || len(s.tokens) > longest {
		return
	}
	yes := r.l.yes[s.tokens[0].low]
	ts, _ := r.l.enter(s.tokens)
	var rest []token
	switch {
	case q.answer.Yes && !yes:
		return
	case !q.answer.Yes:
		if len(ts) == 0 || lx.is(ts[0], isSpeaker|isOwn|isOther|isNegator|isUnreal|isAsking) {
			return
		}
		cs := lx.split(s)
		if len(cs) > 1 {
			if ts, _ = r.l.enter(cs[0].tokens); len(ts) == 0 {
				return
			}
		}
		rest = ts
	}
	lead := r.l.lead(q)
	if len(rest) > 0 && rest[0].low == lead[len(lead)-1].low {
		rest = rest[1:] // "In Bruges." completes "i live in"
	}
	c := &clause{}
	r.match(c, s.tokens, append(lead, rest...), 0, 0)
}

// lead is what stands before a bare answer.
func (l *language) lead(q *question) []token {
	var out []token
	for w := range strings.FieldsSeq(q.answer.Lead) {
		name, ok := strings.CutPrefix(w, "{")
		if !ok {
			out = append(out, virtual(w)...)
			continue
		}
		for _, t := range q.m.get(strings.TrimSuffix(name, "}")) {
			out = append(out, token{low: t.low, text: t.text, word: t.word})
		}
	}
	return out
}
