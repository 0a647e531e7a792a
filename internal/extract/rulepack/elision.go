package rulepack

import (
	"slices"
	"strings"
)

// Inflection replaces the ending From of a verb by To: "carries", "carry".
type Inflection struct {
	From string `yaml:"from"`
	To   string `yaml:"to"`
}

// Elision is what is left out before some words. A leading "*" in Words matches
// any beginning of a word, with the rest of the clause free of finite verbs.
type Elision struct {
	Lead  string   `yaml:"lead"`
	Words []string `yaml:"words"`
}

// elision is a compiled [Elision].
type elision struct {
	lead  []string
	words phrases
}

// leadOf is what was left out before a sentence, nil for nothing.
func (lx *lexicon) leadOf(ts []token) []string {
	for _, e := range lx.elided {
		if e.words.at(ts, 0) > 0 {
			return e.lead
		}
	}
	if lx.is(ts[0], isEmpty|isPreposition|isStop|isSpeaker|isOther) || ts[0].quoted {
		return nil
	}
	for _, e := range lx.elided {
		if endsIn(e.words, ts[0].low) && !slices.ContainsFunc(ts[1:], func(t token) bool { return t.low != "'s" && (lx.is(t, isBe|isAuxiliary) || lx.third[t.low] != "") }) {
			return e.lead
		}
	}
	return nil
}

// endedAt is the length of what ends something at i, 0 for none.
func (lx *lexicon) endedAt(ts []token, i int) int {
	if lx.compared.at(ts, i) > 0 {
		return 0
	}
	return lx.ended.at(ts, i)
}

// apostrophed writes a contraction out that opens a clause without its apostrophe: "were
// moving to Ghent".
func (lx *lexicon) apostrophed(ts []token) []token {
	if len(ts) < 2 || len(lx.bare[ts[0].low]) == 0 || !strings.HasSuffix(ts[1].low, "ing") {
		return ts
	}
	return append(virtual(lx.bare[ts[0].low]...), ts[1:]...)
}

// ordered reports whether a sentence without a subject asks the agent for something:
// "play Bohemian Rhapsody", unlike "play bass in a band".
func (lx *lexicon) ordered(ts []token) bool {
	n := lx.orders.at(ts, 0)
	if n == 0 || n >= len(ts) {
		return false
	}
	asks := ts[n].capital()
	for _, t := range ts[n:] {
		_, weekday := lx.calendar.Weekdays[strings.TrimSuffix(t.low, "s")]
		if lx.is(t, isOwn) || slices.Contains(lx.calendar.Every, t.low) || weekday && strings.HasSuffix(t.low, "s") {
			return false
		}
		asks = asks || lx.pleas[t.low]
	}
	return asks
}

// ableIn is what stands between the speaker and the verb of a clause, and holds for a
// second verb too: "i can shear sheep and fix engines".
func (lx *lexicon) ableIn(ts []token) []string {
	for i := range ts {
		if !lx.is(ts[i], isSpeaker) {
			continue
		}
		if n := lx.able.at(ts, i+1); n > 0 {
			words := make([]string, n)
			for k := range n {
				words[k] = ts[i+1+k].low
			}
			return words
		}
	}
	return nil
}
