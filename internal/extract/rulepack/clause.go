package rulepack

import (
	"slices"
	"strings"
)

// clause is what one subject does: the unit that patterns match.
type clause struct {
	tokens []token
	// question, unreal, reported: nothing it says is the speaker's fact.
	question, unreal, reported bool
	hedged                     bool
	// alone: the clause is the whole sentence.
	alone bool
}

// sentence is a run of tokens up to a full stop.
type sentence struct {
	tokens []token
	asks   bool // ends in a question mark
}

// longestQuote bounds, in tokens, how far a quotation mark looks for its other
// half, so that a text of nothing but marks costs no more than another.
const longestQuote = 200

const enders = ".!?…;\n。！？"

// sentences cuts at terminal marks rather than at UAX #29's sentence borders, which
// join "i like it. i live here" because the second begins in lower case. Text
// between quotation marks is marked as quoted.
func (lx *lexicon) sentences(ts []token) []sentence {
	var out []sentence
	var current []token
	quote := ""
	skip := false // a quoted line
	flush := func(asks bool) {
		if n := lx.told(current); n > 0 && !asks {
			current = current[n:]
		}
		if len(current) > 0 {
			out = append(out, sentence{tokens: current, asks: asks})
			current = nil
		} else if asks && len(out) > 0 {
			out[len(out)-1].asks = true
		}
		quote = ""
	}
	for i, t := range ts {
		switch {
		case t.low == "\n":
			flush(false)
			skip = false
			continue
		case skip:
			continue
		case t.low == ">" && len(current) == 0:
			skip = true
			continue
		case quote != "" && t.low == quote:
			quote = ""
			continue
		case quote == "" && closing(t.low) != "" && slices.ContainsFunc(ts[i+1:min(len(ts), i+1+longestQuote)], func(n token) bool { return n.low == closing(t.low) }):
			quote = closing(t.low)
			continue
		case !t.word && quote == "" && isEnder(t.low):
			flush(t.low == "?" || t.low == "？")
			continue
		}
		t.quoted = quote != ""
		current = append(current, t)
	}
	flush(false)
	return out
}

// told is the length of what opens a sentence that has the form of a question and states
// what follows: "did i tell you that i…", without a question mark.
func (lx *lexicon) told(ts []token) int {
	lead := len(ts) - len(lx.strip(ts))
	if n := lx.tells.at(ts, lead); n > 0 {
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
func (lx *lexicon) abbreviated(ts []token, i int) bool {
	if ts[i].low != "." || i == 0 || i+1 == len(ts) {
		return false
	}
	before := ts[i-1]
	if before.end != ts[i].start {
		return false
	}
	return lx.is(before, isAbbreviation) || before.capital() && len(before.text) == 1 && before.low != "i" && ts[i+1].capital()
}

// clauses cuts sentences where a new subject begins, and marks clauses that state
// nothing.
func (lx *lexicon) clauses(sentences []sentence) []clause {
	var out []clause
	for _, s := range sentences {
		out = append(out, lx.split(s)...)
	}
	return out
}

func (lx *lexicon) split(s sentence) []clause {
	var out []clause
	ts := s.tokens
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
			out = append(out, clause{tokens: ts[from:to], alone: len(starts) == 0})
		}
		from = to
	}
	lx.judge(out, s.asks)
	return out
}

// boundary reports whether a clause begins at or behind token i, where the
// current one began at from.
func (lx *lexicon) boundary(ts []token, from, i int) (at int, ok bool) {
	t := ts[i]
	prev := ts[i-1]
	if t.quoted || i <= from {
		return 0, false
	}
	joint := lx.is(prev, isJoint) || !prev.word && prev.low != "'s" && prev.low != "-" && !lx.is(prev, isBe)
	switch {
	case t.low == "(" || t.low == ")" || (t.low == "—" || t.low == "–") && !lx.is(t, isBe) || t.low == ":" && i+1 < len(ts) && !lx.namesOnly(ts[i+1:]) && !numeric(ts[i+1]):
		return i, true
	case !lx.is(prev, isSpeaker) && lx.opensQuestion(ts, i) && (!lx.is(t, isBe) || lx.clefts.at(ts, from) == 0) && !(lx.is(t, isBe) && lx.dated(ts[i+1:min(len(ts), i+3)])) && (joint || !lx.is(ts[i+1], isOwn|isSpeaker)):
		asks := lx.is(ts[from], isAsking) && i-from <= 3 // "how old are you"
		return i, !asks && !lx.is(prev, isBinder) || joint
	case lx.is(t, isUnreal):
		return i, true
	case lx.is(t, isRelative) && (prev.low == "," || prev.capital()) && i+1 < len(ts) && (lx.is(ts[i+1], isBe) || lx.third[ts[i+1].low] != ""):
		return i, true
	case lx.is(t, isTheirs) && i-from >= 2 && !lx.is(prev, isBinder|isPreposition|isVerb|isBe|isJoint) && lx.owns(ts, i):
		return i, true // "a puppy his name is Bruno"
	case lx.is(t, isParticiple) && i-from >= 3 && i+1 < len(ts) && lx.is(ts[i+1], isPreposition) && lx.is(ts[from], isSpeaker) && lx.is(ts[from+1], isShared) && lx.is(ts[from+2], isArticle) && !lx.is(prev, isArticle|isBe|isVerb|isAnd|isPreposition|isFiller):
		return i, true // "i am a Finn living in Bonn"
	case joint:
		j := i
		for j < len(ts)-1 && (lx.is(ts[j], isFiller|isHedge|isLead|isNegator) || lx.is(ts[j], isJoint)) {
			j++
		}
		starts := lx.is(ts[j], isSpeaker|isOther|isTheirs) || lx.is(ts[j], isBe) && lx.is(prev, isAnd) || lx.is(ts[j], isVerb) && !ts[j].capital() && (prev.word || !lx.is(ts[j], isSimile)) || lx.is(ts[j], isOwn) && !lx.listed(ts, i, j) ||
			lx.third[ts[j].low] != "" || j > i && lx.fillers.at(ts, i) > 0 && strings.HasSuffix(ts[j].low, "ing") || ts[j].capital() && j+1 < len(ts) && lx.is(ts[j+1], isBe)
		if !prev.word && i-from > 2 && lx.is(ts[from], isBinder) && lx.is(ts[from+1], isHearer) && !lx.is(ts[j], isSpeaker|isOther|isOwn) {
			return 0, false // "when you explain, use examples"
		}
		if lx.is(ts[j], isVerb|isSpeaker) && !prev.word && lx.leading(ts[from:i-1]) && lx.is(ts[from], isPreposition|isBinder) {
			return 0, false // "from now on, use…", "when I'm sad, I…"
		}
		return i, starts
	case lx.is(t, isSpeaker):
		return i, !lx.is(prev, isBinder) && i-from >= 2 && !lx.leading(ts[from:i]) && !lx.headed(ts[from:i]) ||
			i-from >= 2 && (lx.hedgeLeads.at(ts, from) == i-from || lx.unrealLeads.at(ts, from) == i-from)
	case lx.is(t, isOwn):
		return i, !lx.is(prev, isBinder|isPreposition|isVerb|isBe) && !strings.HasSuffix(prev.low, "ing") && lx.owns(ts, i)
	}
	return 0, false
}

// numeric reports whether a token is a number or an address: "my number: 555 0190".
func numeric(t token) bool {
	return digit(t.low) || strings.HasPrefix(t.low, "+") || strings.Contains(t.low, "@")
}

// namesOnly reports whether tokens are names and what joins them: "three boys:
// Amos, Ben and Caleb".
func (lx *lexicon) namesOnly(ts []token) bool {
	for _, t := range ts {
		if t.low != "," && !lx.is(t, isAnd) && (!t.capital() || lx.is(t, isStop|isSpeaker|isOther)) {
			return false
		}
	}
	return ts[0].capital()
}

// listed reports whether "my …" at j continues a list ("my cat and my dog").
func (lx *lexicon) listed(ts []token, i, j int) bool {
	return lx.is(ts[i-1], isAnd) && !lx.owns(ts, j)
}

// owns reports whether a copula follows "my …" within a few words.
func (lx *lexicon) owns(ts []token, i int) bool {
	for j := i + 1; j < len(ts) && j <= i+4; j++ {
		if lx.is(ts[j], isBe) || j > i+1 && lx.third[ts[j].low] != "" || ts[j].low == "'s" {
			return j > i+1
		}
		if lx.is(ts[j], isStop|isSpeaker) {
			return false
		}
	}
	return false
}

// leading reports whether the tokens are an adverbial in front of a subject
// ("for plotting", "last year").
func (lx *lexicon) leading(ts []token) bool {
	return len(ts) > 0 && len(ts) <= 5 && (lx.is(ts[0], isPreposition|isBinder|isOften) || lx.leads.at(ts, 0) > 0 || lx.fillers.at(ts, 0) > 0 || lx.dated(ts))
}

// opensQuestion reports whether a question begins at i: "do you", "what is".
func (lx *lexicon) opensQuestion(ts []token, i int) bool {
	if i+1 >= len(ts) {
		return false
	}
	if lx.is(ts[i], isAsking) {
		return lx.is(ts[i+1], isAuxiliary|isAsked|isBe) && !lx.is(ts[i+1], isSpeaker)
	}
	if i+2 < len(ts) && lx.negators.at(ts, i) == 2 && lx.is(ts[i+2], isAsked) && !lx.is(ts[i], isSpeaker) {
		return lx.is(ts[i], isAuxiliary) // "don't you think"
	}
	return lx.is(ts[i], isAuxiliary) && lx.is(ts[i+1], isAsked)
}

// judge marks the clauses of one sentence.
func (lx *lexicon) judge(cs []clause, asks bool) {
	unreal, question, reported, hedged := false, false, false, false
	for i := range cs {
		c := &cs[i]
		ts := lx.strip(c.tokens)
		unreal = unreal || lx.unrealLeads.at(c.tokens, 0) > 0
		if len(ts) == 0 {
			continue
		}
		if i > 0 && !asks && lx.is(ts[0], isRelative) {
			c.reported, c.hedged = reported, hedged
			continue // the pronoun in "Mateo, who …"
		}
		if lx.opensQuestion(ts, 0) && !(!asks && lx.instructs(ts)) && (asks || !lx.is(ts[1], isOwn) || lx.leadOf(ts) == nil) || (asks || len(ts) > 2) && lx.is(ts[0], isAsking) && !lx.is(ts[0], isBinder) {
			question = true
		}
		courtesy := i > 0 && !asks && len(ts) > 1 && lx.is(ts[0], isUnreal) && lx.is(ts[1], isOther) && !lx.modal(cs[:i])
		if (lx.is(ts[0], isUnreal) || lx.unrealLeads.at(ts, 0) > 0) && !courtesy {
			unreal = true
		}
		c.question = question || courtesy || asks && i == len(cs)-1
		c.reported, c.hedged = reported, hedged
		hedged = lx.hedgeLeads.at(ts, 0) == len(ts)
		if lx.reports(ts) {
			reported, c.reported = true, true
		}
		reported = reported || lx.reportedBy(ts)
	}
	for i := range cs {
		cs[i].unreal = unreal
	}
	if n := len(cs) - 1; n > 0 {
		lx.passesOn(&cs[n], &cs[n-1])
	}
}

// instructs reports whether a clause that opens like a question tells when the agent is
// to do something: "when you show me code, include comments".
func (lx *lexicon) instructs(ts []token) bool {
	return lx.is(ts[0], isBinder) && lx.is(ts[1], isHearer) && slices.ContainsFunc(ts, func(t token) bool { return t.low == "," })
}

// passesOn marks a clause behind which the speaker says that it is a guess or that it
// was read or heard, or was a joke: "…, i think", "…, i read". What concerns the speaker holds still.
func (lx *lexicon) passesOn(behind, before *clause) {
	last := lx.strip(behind.tokens)
	switch {
	case len(last) == 0:
	case lx.jokes.at(last, 0) > 0:
		before.reported, behind.reported = true, true // "…, said no one ever"
	case lx.hedgeLeads.at(last, 0) == len(last):
		before.hedged = true
	case lx.sources.at(last, 0) == len(last) && !slices.ContainsFunc(before.tokens, func(t token) bool { return lx.is(t, isSpeaker|isOwn) }):
		before.reported, behind.reported = true, true
	}
}

// modal reports whether clauses say what would be: a condition behind them counts,
// unlike the courtesy of "my birthday is in June, if you need it".
func (lx *lexicon) modal(cs []clause) bool {
	for _, c := range cs {
		if slices.ContainsFunc(c.tokens, func(t token) bool { return lx.is(t, isModal) }) {
			return true
		}
	}
	return false
}

// reports reports whether the clause attributes the next one to another person.
func (lx *lexicon) reports(ts []token) bool {
	if lx.is(ts[0], isSpeaker) {
		return false
	}
	for i, t := range ts {
		if i > 5 {
			return false
		}
		if lx.is(t, isSpeaker) {
			return false
		}
		if lx.is(t, isReporting) && i > 0 {
			return true
		}
	}
	return false
}

// reportedBy reports whether a clause ends in the speaker of the rest: "…, the wolf said".
func (lx *lexicon) reportedBy(ts []token) bool {
	for len(ts) > 0 && !ts[len(ts)-1].word {
		ts = ts[:len(ts)-1]
	}
	n := len(ts)
	return n > 2 && lx.is(ts[n-1], isReporting) && !lx.is(ts[n-2], isSpeaker|isHearer|isNegator|isAuxiliary)
}

// strip cuts what may stand before a clause: marks, conjunctions, greetings.
func (lx *lexicon) strip(ts []token) []token {
	for len(ts) > 0 {
		n := lx.leads.at(ts, 0)
		if n == 0 && (!ts[0].word || lx.is(ts[0], isJoint)) {
			n = 1
		}
		if n == 0 {
			break
		}
		ts = ts[n:]
	}
	return ts
}
