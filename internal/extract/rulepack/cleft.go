package rulepack

import "slices"

// Cleft holds the words of sentences that put what they state first or last: "what i love
// is tea", "tea is the one thing i love", "it is Bonn where i live".
type Cleft struct {
	// Heads stand for what is stated: "what", "the one thing".
	Heads []string `yaml:"heads"`
	// Named are heads that stand for what has a name: "the city". After another word ("is
	// noisy") the sentence states no value.
	Named []string `yaml:"named"`
	// Places are heads that stand for a place ("where"), which Within joins to a verb
	// ("in").
	Places []string `yaml:"places"`
	Within string   `yaml:"within"`
	// Binds may stand between a head and the speaker: "that".
	Binds []string `yaml:"binds"`
}

// longestCleft bounds, in tokens, the relative clause of a cleft sentence.
const longestCleft = 9

// uncleft writes a cleft sentence as the plain one: "what i can't stand is liver" and
// "liver is what i can't stand" become "i can't stand liver". Other clauses are returned
// as they are.
func (lx *lexicon) uncleft(ts []token) []token {
	if plain := lx.fronted(ts); plain != nil {
		return plain
	}
	if plain := lx.inverted(ts); plain != nil {
		return plain
	}
	return ts
}

// fronted reads "what i love is X", "the one thing i hate is X" and "where i live is X".
func (lx *lexicon) fronted(ts []token) []token {
	n := lx.clefts.at(ts, 0)
	if n == 0 {
		return nil
	}
	from := n + lx.binding(ts[n:])
	if from >= len(ts) || !lx.is(ts[from], isSpeaker) {
		return nil
	}
	for i := from + 2; i < len(ts) && i <= from+longestCleft; i++ {
		switch {
		case lx.is(ts[i], isSpeaker) || !ts[i].word && ts[i].low != "'s":
			return nil
		case lx.copula(ts, i) && i+1 < len(ts):
			topic := ts[i+1:]
			if len(topic) > 1 && lx.named(topic[0]) {
				topic = topic[1:] // "the town i live in is called Bath"
			} else if lx.nameHeads.at(ts, 0) == n && !slices.ContainsFunc(topic, token.capital) {
				return nil // "the town i live in is noisy"
			}
			return lx.plainly(ts[from:i], topic, lx.places.at(ts, 0) > 0)
		}
	}
	return nil
}

// headed reports whether the tokens end in the head of a cleft.
func (lx *lexicon) headed(ts []token) bool {
	const longest = 4
	for i := max(0, len(ts)-longest); i < len(ts); i++ {
		if n := lx.clefts.at(ts, i); n > 0 && i+n+lx.binding(ts[i+n:]) == len(ts) && (i == 0 || lx.is(ts[i-1], isBe|isFiller)) {
			return true
		}
	}
	return false
}

// inverted reads "X is what i love", "X is the one thing i hate" and "it is X where i
// live".
func (lx *lexicon) inverted(ts []token) []token {
	for i := 1; i+2 < len(ts) && i <= longestCleft; i++ {
		if lx.is(ts[i-1], isSpeaker) || ts[i].quoted {
			return nil
		}
		if !lx.copula(ts, i) {
			continue
		}
		topic, rest := ts[:i], ts[i+1:]
		for len(rest) > 0 && lx.is(rest[0], isFiller) {
			rest = rest[1:]
		}
		head := 0
		if i == 1 && lx.is(ts[0], isIt) {
			for head < len(rest) && head < longestCleft && lx.binding(rest[head:]) == 0 {
				head++
			}
			topic = rest[:head]
		} else if head = lx.clefts.at(rest, 0); head == 0 {
			return nil
		}
		from := head + lx.binding(rest[min(head, len(rest)):])
		if len(topic) == 0 || from+1 >= len(rest) || !lx.is(rest[from], isSpeaker) || lx.is(topic[0], isOther|isSpeaker|isAsking|isOwn) || slices.ContainsFunc(topic, func(t token) bool { return !t.word }) {
			return nil
		}
		to := from
		for to < len(rest) && (rest[to].word || rest[to].low == "'s") {
			to++
		}
		if slices.ContainsFunc(rest[from:to-1], func(t token) bool { return lx.is(t, isPreposition) }) {
			return nil // "the film is what i hate about Mondays"
		}
		where := lx.places.at(rest, head) > 0 || head > 0 && lx.places.at(rest, 0) == head
		return append(lx.plainly(rest[from:to], topic, where), rest[to:]...)
	}
	return nil
}

// plainly joins what is said of a topic and the topic.
func (lx *lexicon) plainly(said, topic []token, where bool) []token {
	out := slices.Clone(said)
	if where && !lx.is(said[len(said)-1], isPreposition) {
		out = append(out, virtual(lx.within)...)
	}
	return append(out, topic...)
}

// copula reports whether the token at i joins the halves of a cleft.
func (lx *lexicon) copula(ts []token, i int) bool {
	return lx.is(ts[i], isBe) && lx.third[ts[i].low] == lx.shared && !lx.is(ts[i-1], isSpeaker)
}

// binding is 1 where a relative word opens ts.
func (lx *lexicon) binding(ts []token) int {
	if len(ts) > 1 && (lx.is(ts[0], isRelative) || lx.places.at(ts, 0) > 0 || lx.binds.at(ts, 0) > 0) {
		return 1
	}
	return 0
}

// role reads what the speaker says that they are in front of a clause, which it cuts off:
// "as a nurse, i work nights" states "i am a nurse" too.
func (r *reading) role(c *statement, behind []clause) {
	lx := r.l.lx
	ts, f := r.l.enter(c.tokens)
	n := lx.roles.at(ts, 0)
	if n == 0 || ts[0].quoted || c.unreal || c.reported {
		return
	}
	const longestRole = 9
	to := n
	for to < len(ts) && to-n < longestRole && ts[to].low != "," && !lx.is(ts[to], isSpeaker|isOwn|isAuxiliary|isUnreal) {
		to++
	}
	after := slices.Clone(ts[to:])
	for _, b := range behind {
		after = append(after, b.tokens...)
	}
	mine := slices.ContainsFunc(after[:min(len(after), 6)], func(t token) bool { return lx.is(t, isSpeaker|isOwn) })
	const terse = 2 // words of a lead that says no more than "as a"
	if lx.wished(after[:min(len(after), 4)]) {
		c.unreal = true
		return
	}
	if to == n || !mine && n <= terse {
		return
	}
	said := virtual(lx.speaker, lx.shared)
	if last := ts[n-1]; lx.is(last, isArticle) {
		said = append(said, last)
	}
	said = append(said, ts[n:to]...)
	if lx.is(ts[n-1], isRelative) {
		said = append(virtual(lx.speaker), r.l.firstPerson(ts[n:to])...) // "as someone who works nights"
	}
	r.match(&statement{}, c.tokens, said, 0, f)
	c.tokens = ts[to:]
}

// wished reports whether tokens hold what opens a requirement: "as a customer, i want to
// see my orders".
func (lx *lexicon) wished(ts []token) bool {
	for i := range ts {
		if lx.wishes.at(ts, i) > 0 {
			return true
		}
	}
	return false
}
