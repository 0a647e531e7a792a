package rulepack

import "slices"

// Verdict holds the words of an opinion on a thing that was named before them.
type Verdict struct {
	Refuses  []string `yaml:"refuses"`  // "no way"
	Welcomes []string `yaml:"welcomes"` // "yes please"
	// Like and Dislike are the verbs that they stand for.
	Like    string `yaml:"like"`
	Dislike string `yaml:"dislike"`
}

// opensScene reports whether a sentence opens a role play, a supposition or a joke.
func (lx *lexicon) opensScene(ts []token) bool {
	ts = lx.strip(ts)
	return len(ts) > 0 && lx.scenes.at(ts, 0) > 0
}

// raised notes what a question of a few words names: "olives?".
func (r *reading) raised(s sentence) bool {
	const longest = 4
	const closed = isSpeaker | isOther | isHearer | isAsking | isAuxiliary | isAsked | isBe | isVerb | isLead | isEmpty
	if s.asks && len(s.tokens) > 1 && len(s.tokens) <= longest && r.l.lx.is(s.tokens[0], isOwn) {
		r.topic = s.tokens // "my name? it's Leo"
		return true
	}
	if !s.asks || len(s.tokens) > longest || slices.ContainsFunc(s.tokens, func(t token) bool { return r.l.lx.is(t, closed) }) {
		return false
	}
	r.topic = s.tokens
	return true
}

// judged reads what a sentence says of the thing that the question before it or its own
// first words name: "liver? no way", "thai food, yes please".
func (r *reading) judged(s sentence) bool {
	lx := r.l.lx
	topic, said := r.topic, s.tokens
	for i := 1; topic == nil && !s.asks && i < len(said) && i <= 5; i++ {
		if said[i].low == "," {
			topic, said = said[:i], said[i+1:]
		}
	}
	const closed = isSpeaker | isOther | isHearer | isAsking | isAuxiliary | isBe | isOwn | isLead | isEmpty | isNegator
	if len(topic) == 0 || len(said) == 0 || slices.ContainsFunc(topic, func(t token) bool { return t.quoted || !t.word || lx.is(t, closed) }) {
		return false
	}
	liked := lx.welcomes.at(said, 0)
	if n := max(liked, lx.refuses.at(said, 0)); n == 0 || n < len(said) && said[n].word {
		return false
	}
	verb := lx.dislike
	if liked > 0 {
		verb = lx.like
	}
	return r.match(&statement{clause: clause{unreal: r.scene}}, s.tokens, append(virtual(lx.speaker, verb), topic...), 0, 0)
}

// owned puts what the clause before has of the speaker's for "it" as a subject: "i
// changed my number, it's 555 now".
func (l *language) owned(ts []token, before *statement) []token {
	lx := l.lx
	if before == nil || len(ts) < 3 || !lx.is(ts[0], isIt) || !lx.is(ts[1], isBe) {
		return ts
	}
	const most = 4
	for i, t := range before.tokens {
		if !lx.is(t, isOwn) {
			continue
		}
		to := i + 1
		for to < len(before.tokens) && to-i <= most && before.tokens[to].word && !lx.is(before.tokens[to], isStop|isPreposition|isBe|isVerb|isNegator|isTail) && !lx.participle(before.tokens[to]) {
			to++
		}
		if to == i+1 {
			return ts
		}
		said := make([]token, 0, len(ts)+most)
		for _, t := range before.tokens[i:to] {
			said = append(said, token{low: t.low, text: t.text, word: t.word})
		}
		return append(said, ts[1:]...)
	}
	return ts
}

// apposed reads a clause that only says whose a name before it is: "meet Otto, my new
// beagle".
func (r *reading) apposed(c, before *statement) bool {
	if before == nil || len(before.tokens) == 0 {
		return false
	}
	ts := c.tokens
	for len(ts) > 0 && !ts[0].word {
		ts = ts[1:]
	}
	for len(ts) > 0 && !ts[len(ts)-1].word {
		ts = ts[:len(ts)-1]
	}
	name := before.tokens[len(before.tokens)-1]
	if !name.word && len(before.tokens) > 1 {
		name = before.tokens[len(before.tokens)-2]
	}
	if len(ts) == 0 || !name.capital() || r.l.lx.is(name, isNotName|isSpeaker) {
		return false
	}
	who, n := r.l.mentioned(ts, 0)
	if who == nil || who.name != "" || n != len(ts) {
		return false
	}
	who.name = name.text
	r.known.meet(who)
	r.relation(c.tokens, who)
	return true
}

// antecedent puts what was spoken of last for "it" at the end of a clause: "i
// used to love running, but now i hate it".
func (r *reading) antecedent(ts []token) []token {
	lx := r.l.lx
	end := len(ts)
	for end > 0 && (!ts[end-1].word || lx.is(ts[end-1], isTail)) {
		end--
	}
	if end < 3 || !lx.is(ts[end-1], isIt) || !lx.is(ts[0], isSpeaker) && !lx.is(ts[end-3], isSpeaker) {
		return ts
	}
	var said []token
	if m := r.last.m; m != nil {
		said = m.get("o")
	} else if r.asked != nil {
		said = r.asked.get("o")
	}
	if r.topic != nil {
		said = r.topic
	}
	if len(said) == 0 {
		return ts
	}
	out := slices.Clone(ts[:end-1])
	for _, t := range said {
		out = append(out, token{low: t.low, text: t.text, word: t.word})
	}
	return append(out, ts[end:]...)
}

// uninverted moves a subject that follows its verb before the verb, and the words
// before the verb to the end of the clause.
func (lx *lexicon) uninverted(ts []token) []token {
	const far = 5
	for i := 0; lx.inverts && i < far && i+1 < len(ts); i++ {
		if lx.is(ts[i], isVerb) && lx.is(ts[i+1], isSpeaker) {
			out := append([]token{ts[i+1], ts[i]}, ts[i+2:]...)
			return append(out, ts[:i]...)
		}
	}
	return ts
}
