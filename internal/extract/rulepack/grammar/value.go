package grammar

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Share reports whether two values have a word in common: "the night shift", "the day
// shift".
func (lx *Grammar) Share(a, b []Token) bool {
	return slices.ContainsFunc(a, func(t Token) bool {
		return t.Word && !lx.Is(t, Article|Own|Preposition) && slices.ContainsFunc(b, func(u Token) bool { return u.Low == t.Low })
	})
}

// Moving reports whether what stands before an old value moves another thing: "we moved
// the customer from".
func (lx *Grammar) Moving(ts []Token) bool {
	const longest = 5
	n := len(ts) - 1
	return n > 0 && ts[n].Low == lx.origin && slices.ContainsFunc(ts[max(0, n-longest):n], func(t Token) bool { return lx.Is(t, Article) })
}

// Verbless reports whether a preposition without a verb of its own stands before i: "i am in
// the shower", unlike "i go to boxing".
func (lx *Grammar) Verbless(ts []Token, i int) bool {
	if i == 0 || !lx.Is(ts[i-1], Preposition) {
		return false
	}
	return i < 2 || !ts[i-2].Word || lx.Is(ts[i-2], Be|Speaker|Filler|Lead|Joint) || lx.Nowadays.At(ts, i-2) > 0
}

// Changed is the sentence that one value took the place of another.
func (lx *Grammar) Changed(old, value string) string {
	return strings.NewReplacer("{S}", Capitalize(lx.Subject), "{old}", old, "{new}", value).Replace(lx.changedText)
}

// Narrow cuts what stands around an old value: "my accounts from Barclays", "Sublime in
// months".
func (lx *Grammar) Narrow(ts []Token) []Token {
	for i := len(ts) - 1; i > 0; i-- {
		if ts[i-1].Low == lx.origin {
			return ts[i:]
		}
	}
	for i := 1; i < len(ts); i++ {
		if lx.Is(ts[i], Preposition) && ts[i-1].Capital() {
			return ts[:i]
		}
	}
	return ts
}

// Shaped reports whether a value is a day, a date, a number or an address.
func (lx *Grammar) Shaped(ts []Token) bool {
	return slices.ContainsFunc(ts, func(t Token) bool { return lx.Shape(t) != "" })
}

// Shape is what kind of value a word is: a day, a number or an address; empty for
// any other.
func (lx *Grammar) Shape(t Token) string {
	stem := strings.TrimSuffix(t.Low, "s")
	if lx.Calendar.Months[t.Low] > 0 && t.Capital() {
		return "date"
	}
	switch {
	case strings.Contains(t.Low, "@"):
		return "address"
	case Digit(t.Low) || t.Low[0] == '+' && len(t.Low) > 1:
		return "number"
	}
	if _, ok := lx.Calendar.Weekdays[t.Low]; ok {
		return "day"
	}
	if _, ok := lx.Calendar.Weekdays[stem]; ok {
		return "day"
	}
	if _, ok := lx.Calendar.Numbers[t.Low]; ok && !t.Capital() && !lx.Is(t, Article) {
		return "number"
	}
	return ""
}

// Contrast splits "Malaga, not Madrid".
func (lx *Grammar) Contrast(ts []Token) (value, old []Token) {
	for i := range ts {
		if n := lx.notThis.At(ts, i); n > 0 {
			old = ts[i+n:]
			ts = ts[:i]
			break
		}
	}
	for len(ts) > 0 && !ts[len(ts)-1].Word {
		ts = ts[:len(ts)-1]
	}
	return ts, old
}

// Replaced returns the names or numbers that a sentence contrasts with the ones it
// states: "instead of Corsica", "no more Corsica", ", not Corsica".
func (lx *Grammar) Replaced(ts []Token) []Token {
	for i := range ts {
		n := lx.notThis.At(ts, i)
		from := i + n
		for n > 0 && from < len(ts) && (lx.Is(ts[from], Article|Preposition) || lx.Is(ts[from], Own)) {
			from++
		}
		to := from
		for n > 0 && to < len(ts) && (ts[to].Capital() || Digit(ts[to].Low)) && !lx.Is(ts[to], Speaker|Stop) {
			to++
		}
		if to > from {
			return ts[from:to]
		}
	}
	return nil
}

// Bounds reports whether a value may end before i.
func (lx *Grammar) Bounds(ts []Token, i int) bool {
	switch {
	case i == len(ts):
		return true
	case !ts[i].Word:
		return ts[i].Low != "%"
	}
	return !lx.Named(ts[i]) && (lx.Is(ts[i], Stop|Preposition|Joint) || lx.StopsValue(ts, i))
}

// StopsValue reports whether a word or phrase at i is not part of the value before it: "now".
func (lx *Grammar) StopsValue(ts []Token, i int) bool {
	return lx.Nowadays.At(ts, i) > 0 || lx.Tails.At(ts, i) > 0 || lx.Fillers.At(ts, i) > 0 || lx.Dated(ts[i:min(len(ts), i+2)])
}

// Linked is the length of what joins two clauses or sentences at i.
func (lx *Grammar) Linked(ts []Token, i int) int {
	from := i
	for i < len(ts) && (!ts[i].Word && !ts[i].Quoted || lx.Is(ts[i], Joint|Filler|Lead)) && ts[i].Low != "'s" {
		i++
	}
	return i - from
}

// Capitalize writes the first letter as a capital.
func Capitalize(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}
