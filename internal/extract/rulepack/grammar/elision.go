package grammar

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
	words Phrases
}

// LeadOf is what was left out before a sentence, nil for nothing.
func (lx *Grammar) LeadOf(ts []Token) []string {
	for _, e := range lx.elided {
		if e.words.At(ts, 0) > 0 {
			return e.lead
		}
	}
	if lx.Is(ts[0], Empty|Preposition|Stop|Speaker|Other) || ts[0].Quoted {
		return nil
	}
	const shortest = 2 // of the stem: "red" is no participle
	for _, e := range lx.elided {
		if e.words.suffixOf(ts[0].Low, shortest) && !slices.ContainsFunc(ts[1:], func(t Token) bool { return t.Low != "'s" && (lx.Is(t, Be|Auxiliary) || lx.Third[t.Low] != "") }) {
			return e.lead
		}
	}
	return nil
}

// EndedAt is the length of what ends something at i, 0 for none.
func (lx *Grammar) EndedAt(ts []Token, i int) int {
	if lx.compared.At(ts, i) > 0 {
		return 0
	}
	return lx.Ended.At(ts, i)
}

// Apostrophed writes a contraction out that opens a clause without its apostrophe: "were
// moving to Ghent".
func (lx *Grammar) Apostrophed(ts []Token) []Token {
	if len(ts) < 2 || len(lx.bare[ts[0].Low]) == 0 || !strings.HasSuffix(ts[1].Low, "ing") {
		return ts
	}
	return append(Virtual(lx.bare[ts[0].Low]...), ts[1:]...)
}

// Ordered reports whether a sentence without a subject asks the agent for something:
// "play Bohemian Rhapsody", unlike "play bass in a band".
func (lx *Grammar) Ordered(ts []Token) bool {
	n := lx.orders.At(ts, 0)
	if n == 0 || n >= len(ts) {
		return false
	}
	asks := ts[n].Capital()
	for _, t := range ts[n:] {
		_, weekday := lx.Calendar.Weekdays[strings.TrimSuffix(t.Low, "s")]
		if lx.Is(t, Own) || slices.Contains(lx.Calendar.Every, t.Low) || weekday && strings.HasSuffix(t.Low, "s") {
			return false
		}
		asks = asks || lx.pleas[t.Low]
	}
	return asks
}

// AbleIn is what stands between the speaker and the verb of a clause, and holds for a
// second verb too: "i can shear sheep and fix engines".
func (lx *Grammar) AbleIn(ts []Token) []string {
	for i := range ts {
		if !lx.Is(ts[i], Speaker) {
			continue
		}
		if n := lx.able.At(ts, i+1); n > 0 {
			words := make([]string, n)
			for k := range n {
				words[k] = ts[i+1+k].Low
			}
			return words
		}
	}
	return nil
}
