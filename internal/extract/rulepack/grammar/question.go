package grammar

import (
	"slices"
)

// Restate turns a question to the speaker into the beginning of the statement that
// its answer completes: "what do you cook on sundays" into "i cook", "are you
// taking any medicine" into "i am taking", "what are your kids called" into "my kids
// are called". It is empty for other questions.
func (lx *Grammar) Restate(ts []Token) (lead []Token, open bool) {
	const far = 5
	for i := 0; i+1 < len(ts) && i < far; i++ {
		if !lx.Is(ts[i], Auxiliary|Be) || !lx.Is(ts[i+1], Hearer) {
			continue
		}
		open = i > 0
		own := lx.Hearer[ts[i+1].Low]
		rest := ts[i+2:]
		if lx.Words[own]&Own != 0 {
			if i == 0 {
				return nil, false
			}
			to := 0
			for to < len(rest) && rest[to].Word && !lx.Is(rest[to], Stop|Preposition|Verb) && !lx.Named(rest[to]) {
				to++
			}
			lead = append(Virtual(own), Plain(rest[:to])...)
			lead = append(lead, Virtual(ts[i].Low)...)
			if to < len(rest) && lx.Named(rest[to]) {
				lead = append(lead, Plain(rest[to:to+1])...)
			}
			return lead, to > 0
		}
		lead = Virtual(own)
		if form, ok := lx.Third[ts[i].Low]; ok && lx.Is(ts[i], Be) {
			lead = append(lead, Virtual(form)...)
		} else if !lx.Supports(ts[i]) {
			lead = append(lead, Virtual(ts[i].Low)...)
		}
		to := 0
		for to < len(rest) && rest[to].Word && (to+1 == len(rest) && lx.Is(rest[to], Preposition) || !lx.Is(rest[to], Stop|Article|Own|Hearer|Tail)) && !lx.Dated(rest[:to+1]) {
			to++
		}
		if to == 0 || !open && to == len(rest) {
			return nil, false
		}
		return append(lead, Plain(rest[:to])...), open
	}
	return nil, false
}

// Supports reports whether an auxiliary only makes a question: "do".
func (lx *Grammar) Supports(t Token) bool { return slices.Contains(lx.support, t.Low) }

// Named reports whether a word joins a person to a name: "called".
func (lx *Grammar) Named(t Token) bool { return lx.Naming[t.Low] }

// Untailed is the length of a clause without the adverbials at its end: "very much".
func (lx *Grammar) Untailed(ts []Token) int {
	const longest = 3 // of a tail, in words
	end := len(ts)
	for end > 0 {
		n := 0
		for i := max(0, end-longest); i < end && n == 0; i++ {
			if !ts[end-1].Word || lx.Is(ts[end-1], Tail) {
				n = 1
			} else if lx.Tails.At(ts[:end], i) == end-i {
				n = end - i
			}
		}
		if n == 0 {
			return end
		}
		end -= n
	}
	return 0
}
