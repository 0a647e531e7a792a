package grammar

import (
	"slices"
)

// OpensScene reports whether a sentence opens a role play, a supposition or a joke.
func (lx *Grammar) OpensScene(ts []Token) bool {
	ts = lx.Strip(ts)
	return len(ts) > 0 && lx.scenes.At(ts, 0) > 0
}

// Uncertain reports whether a sentence supposes, hedges, plans, repeats what others
// say, or is about code, a text or a game.
func (lx *Grammar) Uncertain(ts []Token) bool {
	for i, t := range ts {
		if lx.Calendar.Months[t.Low] > 0 && (i+1 < len(ts) && Digit(ts[i+1].Low) || i > 0 && lx.Is(ts[i-1], Preposition)) {
			continue // "May 6", "in May"
		}
		if t.Quoted || lx.Technical.At(ts, i) > 0 || i+1 < len(ts) && lx.Is(t, Reporting) && ts[i+1].Low == ":" || lx.Is(t, Unreal|Modal) || lx.Is(t, Reporting) && i+1 < len(ts) && lx.Is(ts[i+1], Speaker|Binder) || lx.Hedges.At(ts, i) > 0 || lx.Planned.At(ts, i) > 0 {
			return true
		}
	}
	return false
}

// Fleets reports whether a sentence tells what is so for a part of a day.
func (lx *Grammar) Fleets(ts []Token) bool {
	for i := range ts {
		if lx.fleeting.At(ts, i) > 0 {
			return true
		}
	}
	return false
}

// Passing reports whether a clause tells what is so for some days: "i am in Rome this
// week". What happened then may last: "i moved to Rome this week".
func (lx *Grammar) Passing(ts []Token) bool {
	if lx.Began(ts) {
		return false
	}
	for i := 1; i < len(ts); i++ {
		if (lx.fleeting.At(ts, i) > 0 || lx.brief.At(ts, i) > 0) && !lx.Is(ts[i-1], Preposition) {
			return true // but not "as of this week"
		}
	}
	return false
}

// OpensTask reports whether a sentence sets a task whose material follows a colon:
// "translate this: i live in Rome".
func (lx *Grammar) OpensTask(ts []Token) bool {
	colon := slices.IndexFunc(ts, func(t Token) bool { return t.Low == ":" })
	if colon < 0 {
		return false
	}
	if slices.ContainsFunc(ts[:colon], func(t Token) bool { return lx.Is(t, Document) }) {
		return true
	}
	ts = lx.Strip(ts)
	return len(ts) > 0 && lx.Tasks.At(ts, 0) > 0
}

// Private reports whether a clause has a word that makes it sensitive.
func (lx *Grammar) Private(ts []Token) bool {
	for i, t := range ts {
		if lx.sensitive.At(ts, i) > 0 || endsIn(lx.sensitive, t.Low) {
			return true
		}
	}
	return false
}

// Began reports whether the verb behind the speaker is in the past: "i turned 30
// on Monday", unlike "i work on Monday".
func (lx *Grammar) Began(ts []Token) bool {
	for i := 1; i < len(ts); i++ {
		if !lx.Is(ts[i-1], Speaker) {
			continue
		}
		for i < len(ts)-1 && lx.Is(ts[i], Filler) {
			i++
		}
		base, ok := lx.Third[ts[i].Low]
		return ok && base == ts[i].Low && !lx.Is(ts[i], Auxiliary)
	}
	return false
}

// reports reports whether the clause attributes the next one to another person.
func (lx *Grammar) reports(ts []Token) bool {
	if lx.Is(ts[0], Speaker) {
		return false
	}
	for i, t := range ts {
		if i > 5 {
			return false
		}
		if lx.Is(t, Speaker) {
			return false
		}
		if lx.Is(t, Reporting) && i > 0 && !(i == 2 && lx.instructs(ts)) {
			if i+2 == len(ts) && ts[i+1].Capital() {
				return false // "my friends say Wolle"
			}
			return i+1 == len(ts) || !lx.Yes[ts[i+1].Low] && !lx.No[ts[i+1].Low] && !lx.Is(ts[i+1], Preposition) // not "she said yes", "i do not believe in"
		}
	}
	return false
}

// reportedBy reports whether a clause ends in the speaker of the rest: "…, the wolf said".
func (lx *Grammar) reportedBy(ts []Token) bool {
	for len(ts) > 0 && !ts[len(ts)-1].Word {
		ts = ts[:len(ts)-1]
	}
	n := len(ts)
	return n > 2 && lx.Is(ts[n-1], Reporting) && !lx.Is(ts[n-2], Speaker|Hearer|Negator|Auxiliary)
}
