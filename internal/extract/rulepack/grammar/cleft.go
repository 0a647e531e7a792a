package grammar

import (
	"slices"
)

// Verdict holds the words of an opinion on a thing that was named before them.
type Verdict struct {
	Refuses  []string `yaml:"refuses"`  // "no way"
	Welcomes []string `yaml:"welcomes"` // "yes please"
	// Like and Dislike are the verbs that they stand for.
	Like    string `yaml:"like"`
	Dislike string `yaml:"dislike"`
}

// Uninverted moves a subject that follows its verb before the verb, and the words
// before the verb to the end of the clause.
func (lx *Grammar) Uninverted(ts []Token) []Token {
	const far = 5
	for i := 0; lx.inverts && i < far && i+1 < len(ts); i++ {
		if lx.Is(ts[i], Verb) && lx.Is(ts[i+1], Speaker) {
			out := append([]Token{ts[i+1], ts[i]}, ts[i+2:]...)
			return append(out, ts[:i]...)
		}
	}
	return ts
}

// Cleft holds the words of sentences that put what they state first or last: "what i love
// is tea", "tea is the one thing i love", "it is Bonn where i live".
type Cleft struct {
	// Heads stand for the stated value: "what", "the one thing".
	Heads []string `yaml:"heads"`
	// Named are heads that stand for a value with a name: "the city". After another word ("is
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

// Uncleft writes a cleft sentence as the plain one: "what i can't stand is liver" and
// "liver is what i can't stand" become "i can't stand liver". Other clauses are returned
// as they are.
func (lx *Grammar) Uncleft(ts []Token) []Token {
	if plain := lx.fronted(ts); plain != nil {
		return plain
	}
	if plain := lx.inverted(ts); plain != nil {
		return plain
	}
	return ts
}

// fronted reads "what i love is X", "the one thing i hate is X" and "where i live is X".
func (lx *Grammar) fronted(ts []Token) []Token {
	n := lx.clefts.At(ts, 0)
	if n == 0 {
		return nil
	}
	from := n + lx.binding(ts[n:])
	if from >= len(ts) || !lx.Is(ts[from], Speaker) {
		return nil
	}
	for i := from + 2; i < len(ts) && i <= from+longestCleft; i++ {
		switch {
		case lx.Is(ts[i], Speaker) || !ts[i].Word && ts[i].Low != "'s":
			return nil
		case lx.copula(ts, i) && i+1 < len(ts):
			topic := ts[i+1:]
			if len(topic) > 1 && lx.Named(topic[0]) {
				topic = topic[1:] // "the town i live in is called Bath"
			} else if lx.nameHeads.At(ts, 0) == n && !slices.ContainsFunc(topic, Token.Capital) {
				return nil // "the town i live in is noisy"
			}
			return lx.plainly(ts[from:i], topic, lx.places.At(ts, 0) > 0)
		}
	}
	return nil
}

// headed reports whether the tokens end in the head of a cleft.
func (lx *Grammar) headed(ts []Token) bool {
	const longest = 4
	for i := max(0, len(ts)-longest); i < len(ts); i++ {
		if n := lx.clefts.At(ts, i); n > 0 && i+n+lx.binding(ts[i+n:]) == len(ts) && (i == 0 || lx.Is(ts[i-1], Be|Filler)) {
			return true
		}
	}
	return false
}

// inverted reads "X is what i love", "X is the one thing i hate" and "it is X where i
// live".
func (lx *Grammar) inverted(ts []Token) []Token {
	for i := 1; i+2 < len(ts) && i <= longestCleft; i++ {
		if lx.Is(ts[i-1], Speaker) || ts[i].Quoted {
			return nil
		}
		if !lx.copula(ts, i) {
			continue
		}
		topic, rest := ts[:i], ts[i+1:]
		for len(rest) > 0 && lx.Is(rest[0], Filler) {
			rest = rest[1:]
		}
		head := 0
		if i == 1 && lx.Is(ts[0], It) {
			for head < len(rest) && head < longestCleft && lx.binding(rest[head:]) == 0 {
				head++
			}
			topic = rest[:head]
		} else if head = lx.clefts.At(rest, 0); head == 0 {
			return nil
		}
		from := head + lx.binding(rest[min(head, len(rest)):])
		if len(topic) == 0 || from+1 >= len(rest) || !lx.Is(rest[from], Speaker) || lx.Is(topic[0], Other|Speaker|Asking|Own) || slices.ContainsFunc(topic, func(t Token) bool { return !t.Word }) {
			return nil
		}
		to := from
		for to < len(rest) && (rest[to].Word || rest[to].Low == "'s") {
			to++
		}
		if slices.ContainsFunc(rest[from:to-1], func(t Token) bool { return lx.Is(t, Preposition) }) {
			return nil // "the film is what i hate about Mondays"
		}
		where := lx.places.At(rest, head) > 0 || head > 0 && lx.places.At(rest, 0) == head
		return append(lx.plainly(rest[from:to], topic, where), rest[to:]...)
	}
	return nil
}

// plainly joins what is said of a topic and the topic.
func (lx *Grammar) plainly(said, topic []Token, where bool) []Token {
	out := slices.Clone(said)
	if where && !lx.Is(said[len(said)-1], Preposition) {
		out = append(out, Virtual(lx.within)...)
	}
	return append(out, topic...)
}

// copula reports whether the token at i joins the halves of a cleft.
func (lx *Grammar) copula(ts []Token, i int) bool {
	return lx.Is(ts[i], Be) && lx.Third[ts[i].Low] == lx.Shared && !lx.Is(ts[i-1], Speaker)
}

// binding is 1 where a relative word opens ts.
func (lx *Grammar) binding(ts []Token) int {
	if len(ts) > 1 && (lx.Is(ts[0], Relative) || lx.places.At(ts, 0) > 0 || lx.binds.At(ts, 0) > 0) {
		return 1
	}
	return 0
}

// Wished reports whether tokens hold what opens a requirement: "as a customer, i want to
// see my orders".
func (lx *Grammar) Wished(ts []Token) bool {
	for i := range ts {
		if lx.wishes.At(ts, i) > 0 {
			return true
		}
	}
	return false
}
