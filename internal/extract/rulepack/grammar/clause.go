package grammar

import (
	"slices"
	"strings"
)

// Clause is what one subject does: the unit that patterns match.
type Clause struct {
	Tokens []Token
	// Question, Unreal, Reported: nothing it says is the speaker's fact.
	Question, Unreal, Reported bool
	Hedged                     bool
	// alone: the clause is the whole sentence.
	alone bool
}

// Sentence is a run of tokens up to a full stop.
type Sentence struct {
	Tokens []Token
	Asks   bool // ends in a question mark
}

// longestQuote bounds, in tokens, how far a quotation mark looks for its other
// half, so that a text of nothing but marks costs no more than another.
const longestQuote = 200

const enders = ".!?…;\n。！？"

// Sentences cuts at terminal marks rather than at UAX #29's sentence borders, which
// join "i like it. i live here" because the second begins in lower case. Text
// between quotation marks is marked as quoted.
func (lx *Grammar) Sentences(ts []Token) []Sentence {
	var out []Sentence
	var current []Token
	quote := ""
	skip := false // a quoted line
	flush := func(asks bool) {
		if n := lx.told(current); n > 0 && !asks {
			current = current[n:]
		}
		current = lx.withoutAside(current)
		if len(current) > 0 {
			out = append(out, Sentence{Tokens: current, Asks: asks})
			current = nil
		} else if asks && len(out) > 0 {
			out[len(out)-1].Asks = true
		}
		quote = ""
	}
	for i, t := range ts {
		switch {
		case t.Low == "\n":
			flush(false)
			skip = false
			continue
		case skip:
			continue
		case t.Low == ">" && len(current) == 0:
			skip = true
			continue
		case quote != "" && t.Low == quote:
			quote = ""
			continue
		case quote == "" && closing(t.Low) != "" && slices.ContainsFunc(ts[i+1:min(len(ts), i+1+longestQuote)], func(n Token) bool { return n.Low == closing(t.Low) }):
			quote = closing(t.Low)
			continue
		case !t.Word && quote == "" && isEnder(t.Low):
			flush(t.Low == "?" || t.Low == "？")
			continue
		}
		t.Quoted = quote != ""
		current = append(current, t)
	}
	flush(false)
	return out
}

// withoutAside cuts what stands between a subject of the speaker's and its copula ("my
// number, if you need it, is 555 0190") or behind a sentence, and says nothing.
func (lx *Grammar) withoutAside(ts []Token) []Token {
	const subject, aside = 5, 9 // tokens
	for i := max(1, len(ts)-aside); i+1 < len(ts); i++ {
		if n := lx.asides.At(ts, i+1); n > 1 && ts[i].Low == "," && i+1+n == len(ts) {
			ts = ts[:i] // "…, believe it or not"
			break
		}
	}
	for i := 0; i+1 < len(ts) && i < subject; i++ {
		if ts[i].Low != "," {
			continue
		}
		if !slices.ContainsFunc(ts[:i], func(t Token) bool { return lx.Is(t, Own) }) || lx.asides.At(ts, i+1) == 0 {
			return ts
		}
		for j := i + 2; j+1 < len(ts) && j < i+aside; j++ {
			if ts[j].Low == "," && lx.Is(ts[j+1], Be) {
				return slices.Concat(ts[:i], ts[j+1:])
			}
		}
		return ts
	}
	return ts
}

// told is the length of what opens a sentence that has the form of a question and states
// what follows: "did i tell you that i…", without a question mark.
func (lx *Grammar) told(ts []Token) int {
	lead := len(ts) - len(lx.Strip(ts))
	if n := lx.tells.At(ts, lead); n > 0 {
		return lead + n
	}
	return 0
}

func isEnder(mark string) bool {
	for _, r := range enders {
		if string(r) == mark {
			return true
		}
	}
	return false
}

func closing(open string) string {
	switch open {
	case `"`:
		return `"`
	case "“", "„":
		return "”"
	case "«":
		return "»"
	}
	return ""
}

// abbreviated reports whether the full stop at i belongs to a word.
func (lx *Grammar) abbreviated(ts []Token, i int) bool {
	if ts[i].Low != "." || i == 0 || i+1 == len(ts) {
		return false
	}
	before := ts[i-1]
	if before.End != ts[i].Start {
		return false
	}
	return lx.Is(before, Abbreviation) || before.Capital() && len(before.Text) == 1 && before.Low != "i" && ts[i+1].Capital()
}

// Clauses cuts sentences where a new subject begins, and marks clauses that state
// nothing.
func (lx *Grammar) Clauses(sentences []Sentence) []Clause {
	var out []Clause
	for _, s := range sentences {
		out = append(out, lx.Split(s)...)
	}
	return out
}

// Split cuts a sentence into clauses, and marks those that state nothing.
func (lx *Grammar) Split(s Sentence) []Clause {
	var out []Clause
	ts := s.Tokens
	from := 0
	var starts []int
	for i := 1; i < len(ts); i++ {
		if at, ok := lx.boundary(ts, from, i); ok {
			starts = append(starts, at)
			from = at
		}
	}
	from = 0
	for _, to := range append(starts, len(ts)) {
		if to > from {
			out = append(out, Clause{Tokens: ts[from:to], alone: len(starts) == 0})
		}
		from = to
	}
	lx.judge(out, s.Asks)
	return out
}

// boundary reports whether a clause begins at or behind token i, where the
// current one began at from.
func (lx *Grammar) boundary(ts []Token, from, i int) (at int, ok bool) {
	t := ts[i]
	prev := ts[i-1]
	if t.Quoted || i <= from {
		return 0, false
	}
	joint := lx.Is(prev, Joint) || !prev.Word && prev.Low != "'s" && prev.Low != "-" && !lx.Is(prev, Be)
	switch {
	case t.Low == "(" || t.Low == ")" || (t.Low == "—" || t.Low == "–") && !lx.Is(t, Be) || t.Low == ":" && i+1 < len(ts) && !lx.namesOnly(ts[i+1:]) && !numeric(ts[i+1]):
		return i, true
	case !lx.Is(prev, Speaker) && lx.opensQuestion(ts, i) && (!lx.Is(t, Be) || lx.clefts.At(ts, from) == 0) && !(lx.Is(t, Be) && lx.Dated(ts[i+1:min(len(ts), i+3)])) && (joint || !lx.Is(ts[i+1], Own|Speaker)):
		asks := lx.Is(ts[from], Asking) && i-from <= 3 // "how old are you"
		return i, !asks && !lx.Is(prev, Binder) || joint
	case lx.Is(t, Unreal):
		return i, true
	case lx.Is(t, Relative) && (prev.Low == "," || prev.Capital()) && i+1 < len(ts) && (lx.Is(ts[i+1], Be) || lx.Third[ts[i+1].Low] != ""):
		return i, true
	case lx.Is(t, Theirs) && i-from >= 2 && !lx.Is(prev, Binder|Preposition|Verb|Be|Joint) && lx.owns(ts, i):
		return i, true // "a puppy his name is Bruno"
	case lx.Is(t, Participle) && i-from >= 3 && i+1 < len(ts) && lx.Is(ts[i+1], Preposition) && lx.Is(ts[from], Speaker) && lx.Is(ts[from+1], Shared) && lx.Is(ts[from+2], Article) && !lx.Is(prev, Article|Be|Verb|And|Preposition|Filler):
		return i, true // "i am a Finn living in Bonn"
	case joint:
		j := i
		for j < len(ts)-1 && (lx.Is(ts[j], Filler|Hedge|Lead|Negator) || lx.Is(ts[j], Joint)) {
			j++
		}
		starts := lx.Is(ts[j], Speaker|Other|Theirs) || lx.Is(ts[j], Be) && lx.Is(prev, And) || lx.Is(ts[j], Verb) && !ts[j].Capital() && (prev.Word || !lx.Is(ts[j], Simile)) || lx.Is(ts[j], Own) && !lx.listed(ts, i, j) ||
			lx.Third[ts[j].Low] != "" && (prev.Word || !lx.Is(ts[j], Simile)) || lx.Is(prev, Joint) && !lx.Is(prev, And) && (lx.Is(ts[j], Crowd) || lx.Negators.At(ts, i) > 1) || j > i && lx.Fillers.At(ts, i) > 0 && strings.HasSuffix(ts[j].Low, "ing") || ts[j].Capital() && j+1 < len(ts) && lx.Is(ts[j+1], Be)
		if !prev.Word && i-from > 2 && lx.Is(ts[from], Binder) && lx.Is(ts[from+1], Hearer) && !lx.Is(ts[j], Speaker|Other|Own) {
			return 0, false // "when you explain, use examples"
		}
		if lx.Is(ts[j], Verb|Speaker) && !prev.Word && lx.leading(ts[from:i-1]) && lx.Is(ts[from], Preposition|Binder) && !lx.opensQuestion(ts, from) {
			return 0, false // "from now on, use…", "when I'm sad, I…"
		}
		return i, starts
	case lx.Is(t, Speaker):
		return i, !lx.Is(prev, Binder) && i-from >= 2 && !lx.leading(ts[from:i]) && !lx.headed(ts[from:i]) ||
			i-from >= 2 && (lx.HedgeLeads.At(ts, from) == i-from || lx.unrealLeads.At(ts, from) == i-from)
	case lx.Is(t, Own):
		return i, !lx.Is(prev, Binder|Preposition|Verb|Be) && !strings.HasSuffix(prev.Low, "ing") && lx.owns(ts, i)
	}
	return 0, false
}

// numeric reports whether a token is a number or an address: "my number: 555 0190".
func numeric(t Token) bool {
	return Digit(t.Low) || strings.HasPrefix(t.Low, "+") || strings.Contains(t.Low, "@")
}

// namesOnly reports whether tokens are names and what joins them: "three boys:
// Amos, Ben and Caleb".
func (lx *Grammar) namesOnly(ts []Token) bool {
	for _, t := range ts {
		if t.Low != "," && !lx.Is(t, And) && (!t.Capital() || lx.Is(t, Stop|Speaker|Other)) {
			return false
		}
	}
	return ts[0].Capital()
}

// listed reports whether "my …" at j continues a list ("my cat and my dog").
func (lx *Grammar) listed(ts []Token, i, j int) bool {
	return lx.Is(ts[i-1], And) && !lx.owns(ts, j)
}

// owns reports whether a copula follows "my …" within a few words.
func (lx *Grammar) owns(ts []Token, i int) bool {
	for j := i + 1; j < len(ts) && j <= i+4; j++ {
		if lx.Is(ts[j], Be) || j > i+1 && lx.Third[ts[j].Low] != "" || ts[j].Low == "'s" {
			return j > i+1
		}
		if lx.Is(ts[j], Stop|Speaker) {
			return false
		}
	}
	return false
}

// leading reports whether the tokens are an adverbial in front of a subject
// ("for plotting", "last year").
func (lx *Grammar) leading(ts []Token) bool {
	if n := lx.Leads.At(ts, 0); n > 0 && n+1 < len(ts) && lx.Is(ts[n], It) && lx.Is(ts[n+1], Be) {
		return false // "yeah it is great i go there a lot"
	}
	return len(ts) > 0 && len(ts) <= 5 && (lx.Is(ts[0], Preposition|Binder|Often) || lx.Leads.At(ts, 0) > 0 || lx.Fillers.At(ts, 0) > 0 || lx.Dated(ts))
}

// opensQuestion reports whether a question begins at i: "do you", "what is".
func (lx *Grammar) opensQuestion(ts []Token, i int) bool {
	if i+1 >= len(ts) {
		return false
	}
	if lx.Is(ts[i], Asking) {
		return lx.Is(ts[i+1], Auxiliary|Asked|Be) && !lx.Is(ts[i+1], Speaker)
	}
	if i+2 < len(ts) && lx.Negators.At(ts, i) == 2 && lx.Is(ts[i+2], Asked) && !lx.Is(ts[i], Speaker) {
		return lx.Is(ts[i], Auxiliary) // "don't you think"
	}
	return lx.Is(ts[i], Auxiliary) && lx.Is(ts[i+1], Asked) && !lx.Is(ts[i+1], Preposition) // not "it is about"
}

// judge marks the clauses of one sentence.
func (lx *Grammar) judge(cs []Clause, asks bool) {
	unreal, question, reported, hedged := false, false, false, false
	for i := range cs {
		c := &cs[i]
		ts := lx.Strip(c.Tokens)
		unreal = unreal || lx.unrealLeads.At(c.Tokens, 0) > 0
		if len(ts) == 0 {
			continue
		}
		if i > 0 && !asks && lx.Is(ts[0], Relative) {
			c.Reported, c.Hedged = reported, hedged
			continue // the pronoun in "Mateo, who …"
		}
		if lx.opensQuestion(ts, 0) && !(!asks && lx.instructs(ts)) && (asks || !lx.Is(ts[1], Own) || lx.LeadOf(ts) == nil) || (asks || len(ts) > 2) && lx.Is(ts[0], Asking) && !lx.Is(ts[0], Binder) {
			question = true
		}
		courtesy := i > 0 && !asks && len(ts) > 1 && lx.Is(ts[0], Unreal) && lx.Is(ts[1], Other) && !lx.modal(cs[:i])
		if (lx.Is(ts[0], Unreal) || lx.unrealLeads.At(ts, 0) > 0) && !courtesy {
			unreal = true
		}
		if i > 0 && question && !asks && lx.Is(ts[0], Speaker|Own) && !cs[i-1].Tokens[len(cs[i-1].Tokens)-1].Word {
			question = false // "do you have a job, i work at a mill"
		}
		c.Question = question || courtesy || asks && i == len(cs)-1
		c.Reported, c.Hedged = reported, hedged
		hedged = lx.HedgeLeads.At(ts, 0) == len(ts)
		if lx.reports(ts) {
			reported, c.Reported = true, true
		}
		reported = reported || lx.reportedBy(ts)
	}
	for i := range cs {
		cs[i].Unreal = unreal
	}
	if n := len(cs) - 1; n > 0 {
		lx.passesOn(&cs[n], &cs[n-1])
	}
}

// instructs reports whether a clause that opens like a question tells when the agent is
// to do something: "when you show me code, include comments".
func (lx *Grammar) instructs(ts []Token) bool {
	return lx.Is(ts[0], Binder) && lx.Is(ts[1], Hearer) && slices.ContainsFunc(ts, func(t Token) bool { return t.Low == "," })
}

// passesOn marks a clause behind which the speaker says that it is a guess or that it
// was read or heard, or was a joke: "…, i think", "…, i read". What concerns the speaker holds still.
func (lx *Grammar) passesOn(behind, before *Clause) {
	last := lx.Strip(behind.Tokens)
	switch {
	case len(last) == 0:
	case lx.Jokes.At(last, 0) > 0:
		before.Reported, behind.Reported = true, true // "…, said no one ever"
	case lx.HedgeLeads.At(last, 0) == len(last):
		before.Hedged = true
	case lx.sources.At(last, 0) == len(last) && !slices.ContainsFunc(before.Tokens, func(t Token) bool { return lx.Is(t, Speaker|Own) }):
		before.Reported, behind.Reported = true, true
	}
}

// modal reports whether clauses say what would be: a condition behind them counts,
// unlike the courtesy of "my birthday is in June, if you need it".
func (lx *Grammar) modal(cs []Clause) bool {
	for _, c := range cs {
		if slices.ContainsFunc(c.Tokens, func(t Token) bool { return lx.Is(t, Modal) }) {
			return true
		}
	}
	return false
}

// LeadAt is the length of what leads a clause in and says nothing, 0 for none: "hi there",
// but not the subject of "there is".
func (lx *Grammar) LeadAt(ts []Token) int {
	n := lx.Leads.At(ts, 0)
	if n == 1 && len(ts) > 1 && lx.Is(ts[0], Other) && lx.Is(ts[1], Be) {
		return 0
	}
	return n
}

// Strip cuts what may stand before a clause: marks, conjunctions, greetings.
func (lx *Grammar) Strip(ts []Token) []Token {
	for len(ts) > 0 {
		n := lx.LeadAt(ts)
		if n == 0 && (!ts[0].Word || lx.Is(ts[0], Joint)) {
			n = 1
		}
		if n == 0 {
			break
		}
		ts = ts[n:]
	}
	return ts
}
