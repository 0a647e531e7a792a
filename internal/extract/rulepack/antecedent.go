package rulepack

import (
	"slices"
	"strings"

	"palimpsest/internal/extract/rulepack/grammar"
)

// raised notes what a question of a few words names: "olives?".
func (r *reading) raised(s grammar.Sentence) bool {
	const longest = 4
	const closed = grammar.Speaker | grammar.Other | grammar.Hearer | grammar.Asking | grammar.Auxiliary | grammar.Asked | grammar.Be | grammar.Verb | grammar.Lead | grammar.Empty
	if s.Asks && len(s.Tokens) > 1 && len(s.Tokens) <= longest && r.l.lx.Is(s.Tokens[0], grammar.Own) {
		r.topic = s.Tokens // "my name? it's Leo"
		return true
	}
	if !s.Asks || len(s.Tokens) > longest || slices.ContainsFunc(s.Tokens, func(t grammar.Token) bool { return r.l.lx.Is(t, closed) }) {
		return false
	}
	r.topic = s.Tokens
	return true
}

// judged reads what a sentence says of the thing that the question before it or its own
// first words name: "liver? no way", "thai food, yes please".
func (r *reading) judged(s grammar.Sentence) bool {
	lx := r.l.lx
	topic, said := r.topic, s.Tokens
	for i := 1; topic == nil && !s.Asks && i < len(said) && i <= 5; i++ {
		if said[i].Low == "," {
			topic, said = said[:i], said[i+1:]
		}
	}
	const closed = grammar.Speaker | grammar.Other | grammar.Hearer | grammar.Asking | grammar.Auxiliary | grammar.Be | grammar.Own | grammar.Lead | grammar.Empty | grammar.Negator
	if len(topic) == 0 || len(said) == 0 || slices.ContainsFunc(topic, func(t grammar.Token) bool { return t.Quoted || !t.Word || lx.Is(t, closed) }) {
		return false
	}
	liked := lx.Welcomes.At(said, 0)
	if n := max(liked, lx.Refuses.At(said, 0)); n == 0 || n < len(said) && said[n].Word {
		return false
	}
	verb := lx.Dislike
	if liked > 0 {
		verb = lx.Like
	}
	return r.match(&statement{Clause: grammar.Clause{Unreal: r.scene}}, s.Tokens, append(grammar.Virtual(lx.Speaker, verb), topic...), 0, 0)
}

// owned puts what the clause before has of the speaker's for "it" as a subject: "i
// changed my number, it's 555 now".
func (l *language) owned(ts []grammar.Token, before *statement) []grammar.Token {
	lx := l.lx
	if before == nil || len(ts) < 3 || !lx.Is(ts[0], grammar.It) || !lx.Is(ts[1], grammar.Be) {
		return ts
	}
	const most = 4
	for i, t := range before.Tokens {
		if !lx.Is(t, grammar.Own) {
			continue
		}
		to := i + 1
		for to < len(before.Tokens) && to-i <= most && before.Tokens[to].Word && !lx.Is(before.Tokens[to], grammar.Stop|grammar.Preposition|grammar.Be|grammar.Verb|grammar.Negator|grammar.Tail) && !lx.Participle(before.Tokens[to]) {
			to++
		}
		if to == i+1 {
			return ts
		}
		said := make([]grammar.Token, 0, len(ts)+most)
		for _, t := range before.Tokens[i:to] {
			said = append(said, grammar.Token{Low: t.Low, Text: t.Text, Word: t.Word})
		}
		return append(said, ts[1:]...)
	}
	return ts
}

// apposed reads a clause that only says whose a name before it is: "meet Otto, my new
// beagle".
func (r *reading) apposed(c, before *statement) bool {
	if before == nil || len(before.Tokens) == 0 {
		return false
	}
	ts := c.Tokens
	for len(ts) > 0 && !ts[0].Word {
		ts = ts[1:]
	}
	for len(ts) > 0 && !ts[len(ts)-1].Word {
		ts = ts[:len(ts)-1]
	}
	name := before.Tokens[len(before.Tokens)-1]
	if !name.Word && len(before.Tokens) > 1 {
		name = before.Tokens[len(before.Tokens)-2]
	}
	if len(ts) == 0 || !name.Capital() || r.l.lx.Is(name, grammar.NotName|grammar.Speaker) {
		return false
	}
	who, n := r.l.mentioned(ts, 0)
	if who == nil || who.name != "" || n != len(ts) {
		return false
	}
	who.name = name.Text
	r.known.meet(who)
	r.relation(c.Tokens, who)
	return true
}

// antecedent puts what was spoken of last for "it" at the end of a clause: "i
// used to love running, but now i hate it".
func (r *reading) antecedent(ts []grammar.Token, before *statement) []grammar.Token {
	lx := r.l.lx
	if len(ts) > 3 && lx.Is(ts[0], grammar.It) && lx.Is(ts[1], grammar.Be) && lx.Is(ts[2], grammar.Own) && lx.Prized[ts[3].Low] {
		said := r.spoken()
		if before != nil {
			said = r.l.lastNoun(before.Tokens)
		}
		if len(said) > 0 {
			return append(grammar.Plain(said), ts[1:]...) // "it is my favorite"
		}
		return ts
	}
	end := lx.Untailed(ts)
	if before == nil && lx.Like != "" && end > 1 && end <= 4 && lx.Is(ts[0], grammar.Own) && lx.Prized[ts[1].Low] && !slices.ContainsFunc(ts[1:end], func(t grammar.Token) bool { return !t.Word || lx.Is(t, grammar.Be|grammar.Verb|grammar.Preposition) }) {
		if said := r.spoken(); len(said) > 0 {
			return append(grammar.Virtual(lx.Speaker, lx.Like), grammar.Plain(said)...) // "titanic? my favorite movie!"
		}
	}
	if end < 3 || !lx.Is(ts[end-1], grammar.It) || !lx.Is(ts[0], grammar.Speaker) && !lx.Is(ts[end-3], grammar.Speaker) {
		return ts
	}
	said := r.spoken()
	if len(said) == 0 {
		return ts
	}
	out := append(slices.Clone(ts[:end-1]), grammar.Plain(said)...)
	return append(out, ts[end:]...)
}

// lastNoun is the noun phrase that ends a clause behind its verb; nil for one behind a
// preposition, which is not what the clause speaks of.
func (l *language) lastNoun(ts []grammar.Token) []grammar.Token {
	const stops = grammar.Article | grammar.Own | grammar.Verb | grammar.Be | grammar.Auxiliary | grammar.Empty | grammar.Filler
	const most = 4
	ts = ts[:l.lx.Untailed(ts)]
	for i := len(ts) - 1; i >= 0 && len(ts)-i <= most; i-- {
		t := ts[i]
		switch {
		case l.lx.Is(t, stops) || strings.HasSuffix(t.Low, "ing") && i < len(ts)-1:
			return ts[i+1:]
		case !t.Word || l.lx.Is(t, grammar.Preposition|grammar.Stop|grammar.Speaker|grammar.Other|grammar.Joint|grammar.Negator):
			return nil
		}
	}
	return nil
}

// spoken is what was spoken of last; nil for nothing.
func (r *reading) spoken() []grammar.Token {
	switch m := r.last.m; {
	case r.topic != nil:
		return r.topic
	case r.asked != nil && (m == nil || r.fresh && len(r.asked.about(r.l.lx)) > 0):
		return r.asked.about(r.l.lx)
	case m != nil:
		return m.Get("o")
	}
	return nil
}
