package rulepack

import "slices"

// opensScene reports whether a sentence opens a role play, a supposition or a joke.
func (lx *lexicon) opensScene(ts []token) bool {
	ts = lx.strip(ts)
	return len(ts) > 0 && lx.scenes.at(ts, 0) > 0
}

// raised notes what a question of a few words names: "olives?".
func (r *reading) raised(s sentence) bool {
	const longest = 4
	const closed = isSpeaker | isOther | isHearer | isAsking | isAuxiliary | isAsked | isBe | isVerb | isLead | isEmpty
	if !s.asks || len(s.tokens) > longest || slices.ContainsFunc(s.tokens, func(t token) bool { return r.l.lx.is(t, closed) }) {
		return false
	}
	r.topic = s.tokens
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
		said = r.asked.m.get("o")
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
