package rulepack

import (
	"slices"
	"strings"
)

// question is what was asked in the turn before.
type question struct {
	tokens []token
	// answer is nil where the pack has none for the question; the words before a
	// bare answer are then restated.
	answer   *answer
	m        *match
	restated []token
	// open: the question asks for more than yes or no.
	open bool
}

// get returns what a question asks about; nil for nothing.
func (q *question) get(name string) []token {
	if q.m == nil {
		return nil
	}
	return q.m.get(name)
}

// asked finds the last question of a turn.
func (l *language) asked(text string) *question {
	lx := l.lx
	sentences := lx.sentences(lx.tokenize(text))
	for i := len(sentences) - 1; i >= 0; i-- {
		whole := lx.strip(sentences[i].tokens)
		if sentences[i].asks && len(whole) > 0 {
			if q := l.answered(whole); q != nil {
				return q
			}
		}
		cs := lx.split(sentences[i])
		for j := len(cs) - 1; j >= 0; j-- {
			ts := lx.strip(cs[j].tokens)
			if !cs[j].question || len(ts) == 0 {
				continue
			}
			q := l.answered(ts)
			if q == nil {
				q = &question{tokens: ts}
				q.restated, q.open = lx.restate(ts)
			}
			return q
		}
	}
	return nil
}

// answered finds the answer of the pack to a question.
func (l *language) answered(ts []token) *question {
	steps := textSteps
	mo := newMemo(ts, &steps)
	for j := range l.answers {
		for _, p := range l.answers[j].asks {
			if m := p.run(l.lx, ts, mo, 0, 0); m != nil {
				return &question{tokens: ts, answer: &l.answers[j], m: m, open: !l.answers[j].Yes}
			}
		}
	}
	return nil
}

// restate turns a question to the speaker into the beginning of the statement that
// its answer completes: "what do you cook on sundays" into "i cook", "are you
// taking any medicine" into "i am taking", "what are your kids called" into "my kids
// are called". It is empty for other questions.
func (lx *lexicon) restate(ts []token) (lead []token, open bool) {
	const far = 5
	for i := 0; i+1 < len(ts) && i < far; i++ {
		if !lx.is(ts[i], isAuxiliary|isBe) || !lx.is(ts[i+1], isHearer) {
			continue
		}
		open = i > 0
		own := lx.hearer[ts[i+1].low]
		rest := ts[i+2:]
		if lx.words[own]&isOwn != 0 {
			if i == 0 {
				return nil, false
			}
			to := 0
			for to < len(rest) && rest[to].word && !lx.is(rest[to], isStop|isPreposition|isVerb) && !lx.named(rest[to]) {
				to++
			}
			lead = append(virtual(own), plain(rest[:to])...)
			lead = append(lead, virtual(ts[i].low)...)
			if to < len(rest) && lx.named(rest[to]) {
				lead = append(lead, plain(rest[to:to+1])...)
			}
			return lead, to > 0
		}
		lead = virtual(own)
		if form, ok := lx.third[ts[i].low]; ok && lx.is(ts[i], isBe) {
			lead = append(lead, virtual(form)...)
		} else if !lx.supports(ts[i]) {
			lead = append(lead, virtual(ts[i].low)...)
		}
		to := 0
		for to < len(rest) && rest[to].word && (to+1 == len(rest) && lx.is(rest[to], isPreposition) || !lx.is(rest[to], isStop|isArticle|isOwn|isHearer|isTail)) && !lx.dated(rest[:to+1]) {
			to++
		}
		if to == 0 || !open && to == len(rest) {
			return nil, false
		}
		return append(lead, plain(rest[:to])...), open
	}
	return nil, false
}

// mine puts what was asked about behind the possessive of "mine is Ravel", which
// follows "do you have a favorite composer?".
func (r *reading) mine(ts []token) []token {
	lx := r.l.lx
	if r.asked == nil || len(ts) < 3 || !slices.Contains(lx.mine, ts[0].low) || !lx.is(ts[1], isBe) {
		return ts
	}
	asked := r.asked.tokens
	for i := len(asked) - 1; i > 0; i-- {
		if !lx.is(asked[i-1], isHearer|isArticle) || !asked[i].word || lx.is(asked[i], isVerb|isBe) {
			continue
		}
		to := i
		for to < len(asked) && asked[to].word && !lx.is(asked[to], isStop|isPreposition|isBe|isTail) {
			to++
		}
		if to > i {
			return append(append(virtual(r.l.ownWord), plain(asked[i:to])...), ts[1:]...)
		}
	}
	return ts
}

// supports reports whether an auxiliary only makes a question: "do".
func (lx *lexicon) supports(t token) bool { return slices.Contains(lx.support, t.low) }

// named reports whether a word joins a person to a name: "called".
func (lx *lexicon) named(t token) bool { return lx.naming[t.low] }

// plain is tokens without their places in another text.
func plain(ts []token) []token {
	out := make([]token, 0, len(ts))
	for _, t := range ts {
		out = append(out, token{low: t.low, text: t.text, word: t.word})
	}
	return out
}

// answer reads a sentence as the answer to a question: "River ice." after "What
// do you study?" reads as "i study river ice".
func (r *reading) answer(s sentence, q *question) {
	const longest = 14 // a longer one is a statement of its own
	lx := r.l.lx
	if s.asks || len(s.tokens) == 0 || len(s.tokens) > longest {
		return
	}
	if lx.negators.at(s.tokens, 0) > 0 && lx.ended.at(s.tokens, len(s.tokens)-1) > 0 && len(s.tokens) <= 3 {
		r.over(s, q)
		return
	}
	yes := r.l.lx.yes[s.tokens[0].low]
	ts, _ := r.l.enter(s.tokens)
	var rest []token
	switch {
	case q.answer == nil && (len(q.restated) == 0 || !q.open && !yes):
		return
	case q.answer != nil && q.answer.Yes && !yes:
		return
	case q.answer == nil || !q.answer.Yes:
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
	lead := q.restated
	if q.answer != nil {
		lead = q.filled(q.answer.Lead)
	}
	if q.answer == nil && len(rest) == 0 {
		return
	}
	if r.completes(s, lead, rest) || q.answer == nil || q.answer.Else == "" {
		return
	}
	r.completes(s, q.filled(q.answer.Else), rest)
}

// over reads "not anymore" after a question such as "do you still smoke".
func (r *reading) over(s sentence, q *question) {
	lx := r.l.lx
	for i := 0; i+2 < len(q.tokens); i++ {
		if lx.supports(q.tokens[i]) && lx.is(q.tokens[i+1], isHearer) {
			said := append(virtual(r.l.speakerWord), plain(q.tokens[i+2:])...)
			r.match(&statement{}, s.tokens, append(said, plain(s.tokens[1:])...), 0, 0)
			return
		}
	}
}

// completes reads what the words before a bare answer and the answer say together.
func (r *reading) completes(s sentence, lead, rest []token) bool {
	if len(rest) > 0 && rest[0].low == lead[len(lead)-1].low {
		rest = rest[1:] // "In Bruges." completes "i live in"
	}
	return r.match(&statement{}, s.tokens, append(slices.Clone(lead), rest...), 0, 0)
}

// filled is the words before a bare answer, with what the question captured.
func (q *question) filled(lead string) []token {
	var out []token
	for w := range strings.FieldsSeq(lead) {
		name, ok := strings.CutPrefix(w, "{")
		if !ok {
			out = append(out, virtual(w)...)
			continue
		}
		out = append(out, plain(q.get(strings.TrimSuffix(name, "}")))...)
	}
	return out
}
