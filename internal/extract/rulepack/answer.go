package rulepack

import (
	"slices"
	"strings"

	"palimpsest/internal/extract/rulepack/grammar"
	"palimpsest/internal/extract/rulepack/pattern"
)

// question is what was asked in the turn before.
type question struct {
	tokens []grammar.Token
	// answer is nil where the pack has none for the question; the words before a
	// bare answer are then restated.
	answer   *answer
	m        *pattern.Match
	restated []grammar.Token
	// open: the question asks for more than yes or no.
	open bool
}

// get returns what a question asks about; nil for nothing.
func (q *question) get(name string) []grammar.Token {
	if q.m == nil {
		return nil
	}
	return q.m.Get(name)
}

// about is what a question to the speaker is about: "opera" of "do you listen to opera".
func (q *question) about(lx *grammar.Grammar) []grammar.Token {
	if o := q.get("o"); len(o) > 0 || len(q.tokens) < 4 || !lx.Is(q.tokens[0], grammar.Auxiliary) || !lx.Is(q.tokens[1], grammar.Hearer) {
		return o
	}
	rest := q.tokens[3:] // behind the verb
	for len(rest) > 0 && lx.Is(rest[0], grammar.Article|grammar.Preposition|grammar.Empty) {
		rest = rest[1:]
	}
	to := 0
	for to < len(rest) && rest[to].Word && !lx.Is(rest[to], grammar.Stop|grammar.Preposition|grammar.Joint|grammar.Own|grammar.Hearer|grammar.Tail|grammar.Empty) {
		to++
	}
	if to < len(rest) && rest[to].Word {
		return nil
	}
	return rest[:to]
}

// asked finds the last question of a turn.
func (l *language) asked(text string) *question {
	return l.questioned(l.lx.Sentences(l.lx.Tokenize(text)))
}

// questioned finds the last question of sentences.
func (l *language) questioned(sentences []grammar.Sentence) *question {
	lx := l.lx
	for i := len(sentences) - 1; i >= 0; i-- {
		whole := lx.Strip(sentences[i].Tokens)
		if sentences[i].Asks && len(whole) > 0 {
			if q := l.answered(whole); q != nil {
				return q
			}
		}
		cs := lx.Split(sentences[i])
		for j := len(cs) - 1; j >= 0; j-- {
			ts := lx.Strip(cs[j].Tokens)
			if !cs[j].Question || len(ts) == 0 {
				continue
			}
			q := l.answered(ts)
			if q == nil {
				q = &question{tokens: ts}
				q.restated, q.open = lx.Restate(ts)
			}
			return q
		}
	}
	return nil
}

// answered finds the answer of the pack to a question.
func (l *language) answered(ts []grammar.Token) *question {
	steps := pattern.TextSteps
	mo := pattern.NewMemo(ts, &steps)
	for j := range l.answers {
		for _, p := range l.answers[j].asks {
			if m := p.Match(l.lx, ts, mo, 0, 0); m != nil {
				return &question{tokens: ts, answer: &l.answers[j], m: m, open: !l.answers[j].Yes}
			}
		}
	}
	return nil
}

// mine puts what was asked about behind the possessive of "mine is Ravel", which
// follows "do you have a favorite composer?".
func (r *reading) mine(ts []grammar.Token) []grammar.Token {
	lx := r.l.lx
	if r.asked == nil || len(ts) < 3 || !slices.Contains(lx.Mine, ts[0].Low) || !lx.Is(ts[1], grammar.Be) {
		return ts
	}
	asked := r.asked.tokens
	for i := len(asked) - 1; i > 0; i-- {
		if !lx.Is(asked[i-1], grammar.Hearer|grammar.Article) || !asked[i].Word || lx.Is(asked[i], grammar.Verb|grammar.Be) {
			continue
		}
		to := i
		for to < len(asked) && asked[to].Word && !lx.Is(asked[to], grammar.Stop|grammar.Preposition|grammar.Be|grammar.Tail) {
			to++
		}
		if to > i {
			return append(append(grammar.Virtual(r.l.ownWord), grammar.Plain(asked[i:to])...), ts[1:]...)
		}
	}
	return ts
}

// answer reads a sentence as the answer to a question: "River ice." after "What
// do you study?" reads as "i study river ice".
func (r *reading) answer(s grammar.Sentence, q *question) {
	const longest = 14 // a longer one is a statement of its own
	lx := r.l.lx
	if s.Asks || len(s.Tokens) == 0 || len(s.Tokens) > longest {
		return
	}
	if lx.Negators.At(s.Tokens, 0) > 0 && lx.Ended.At(s.Tokens, len(s.Tokens)-1) > 0 && len(s.Tokens) <= 3 {
		r.over(s, q)
		return
	}
	yes := r.l.lx.Yes[s.Tokens[0].Low]
	ts, _ := r.l.enter(s.Tokens)
	if len(ts) > 2 && q.answer != nil && lx.Is(ts[0], grammar.It) && lx.Is(ts[1], grammar.Be) && ts[2].Capital() {
		ts = ts[2:] // "it's Ottilie"
	}
	var rest []grammar.Token
	switch {
	case q.answer == nil && (len(q.restated) == 0 || !q.open && !yes):
		return
	case q.answer != nil && q.answer.Yes && !yes:
		return
	case q.answer == nil || !q.answer.Yes:
		if len(ts) == 0 || lx.Is(ts[0], grammar.Speaker|grammar.Own|grammar.Other|grammar.Negator|grammar.Unreal|grammar.Asking) {
			return
		}
		cs := lx.Split(s)
		if len(cs) > 1 {
			if ts, _ = r.l.enter(cs[0].Tokens); len(ts) == 0 {
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
func (r *reading) over(s grammar.Sentence, q *question) {
	lx := r.l.lx
	for i := 0; i+2 < len(q.tokens); i++ {
		if lx.Supports(q.tokens[i]) && lx.Is(q.tokens[i+1], grammar.Hearer) {
			said := append(grammar.Virtual(r.l.speakerWord), grammar.Plain(q.tokens[i+2:])...)
			r.match(&statement{}, s.Tokens, append(said, grammar.Plain(s.Tokens[1:])...), 0, 0)
			return
		}
	}
}

// affirmed reads "i do" and "i am not" behind a question to the speaker, or one of the
// speaker's own: "do you ski? i do".
func (r *reading) affirmed(c *statement, full, ts []grammar.Token) bool {
	lx := r.l.lx
	if !r.fresh || r.asked == nil || len(ts) < 2 || !lx.Is(ts[0], grammar.Speaker) || !lx.Is(ts[1], grammar.Auxiliary|grammar.Be) {
		return false
	}
	to := 2
	if lx.Negators.At(ts, 1) == 2 || lx.Negators.At(ts, 2) == 1 {
		to = 3
	}
	asked := r.asked.tokens
	if len(asked) < 3 || !lx.Is(asked[1], grammar.Hearer) || asked[0].Low != ts[1].Low && lx.Third[asked[0].Low] != ts[1].Low ||
		slices.ContainsFunc(ts[to:], func(t grammar.Token) bool { return t.Word && !lx.Is(t, grammar.Tail|grammar.Filler) }) ||
		slices.ContainsFunc(asked[2:], func(t grammar.Token) bool {
			return lx.Is(t, grammar.Speaker|grammar.Own|grammar.Hearer) || lx.Echo[t.Low] != ""
		}) {
		return false
	}
	said := grammar.Virtual(r.l.speakerWord)
	if to == 3 || !lx.Supports(ts[1]) {
		said = append(said, grammar.Plain(ts[1:to])...)
	}
	return r.match(c, full, append(said, grammar.Plain(asked[2:])...), 0, 0)
}

// completes reads what the words before a bare answer and the answer say together.
func (r *reading) completes(s grammar.Sentence, lead, rest []grammar.Token) bool {
	if len(rest) > 0 && rest[0].Low == lead[len(lead)-1].Low {
		rest = rest[1:] // "In Bruges." completes "i live in"
	}
	return r.match(&statement{answers: true}, s.Tokens, append(slices.Clone(lead), rest...), 0, 0)
}

// filled is the words before a bare answer, with what the question captured.
func (q *question) filled(lead string) []grammar.Token {
	var out []grammar.Token
	for w := range strings.FieldsSeq(lead) {
		name, ok := strings.CutPrefix(w, "{")
		if !ok {
			out = append(out, grammar.Virtual(w)...)
			continue
		}
		out = append(out, grammar.Plain(q.get(strings.TrimSuffix(name, "}")))...)
	}
	return out
}
