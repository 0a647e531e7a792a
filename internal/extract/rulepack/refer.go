package rulepack

import (
	"slices"
	"strings"

	"palimpsest/internal/extract/rulepack/grammar"
)

// resolve turns a clause about another person into one in the first person: "my
// brother Tom hates cilantro" becomes "i hate cilantro", about Tom. ok is false if
// the clause is about no known person.
func (l *language) resolve(ts []grammar.Token, before *statement, known *people) (who *person, rest []grammar.Token, ok bool) {
	lx := l.lx
	if len(ts) < 2 {
		return nil, nil, false
	}
	who, n := l.mentioned(ts, 0)
	switch {
	case who != nil:
		if name := l.opening(before); name != "" && who.name == "" && n < len(ts) && ts[n].Low == "," {
			who.name = name // "Ida, my wife, is a doctor"
		}
		if prior := known.sameRelation(who); prior != nil {
			who = prior
		}
		known.meet(who)
	case lx.Is(ts[0], grammar.Relative):
		if who, n = l.relative(before, known), 1; who == nil {
			return nil, nil, false
		}
		known.meet(who)
	case lx.Is(ts[0], grammar.He|grammar.She) && known.recent != nil:
		p := known.recent.relation.Pronoun
		if p == "she" && !lx.Is(ts[0], grammar.She) || p == "he" && !lx.Is(ts[0], grammar.He) {
			return nil, nil, false
		}
		who, n = known.recent, 1
	case lx.Is(ts[0], grammar.Theirs) && known.recent != nil:
		return known.recent, append(grammar.Virtual(l.ownWord), ts[1:]...), true
	case ts[0].Capital() && known.byName[ts[0].Low] != nil:
		who, n = known.byName[ts[0].Low], 1
	default:
		return nil, nil, false
	}
	if n >= len(ts) {
		return nil, nil, false
	}
	if ts[n].Low == "'s" && n+1 < len(ts) {
		if !lx.IsCopula(ts, n) {
			return who, append(grammar.Virtual(l.ownWord), ts[n+1:]...), true
		}
	}
	return who, append(grammar.Virtual(l.speakerWord), l.firstPerson(ts[n:])...), true
}

// opening is the name that a clause consists of; empty for any other clause.
func (l *language) opening(before *statement) string {
	const longest = 3 // words of a name
	if before == nil {
		return ""
	}
	ts := before.Tokens
	for len(ts) > 0 && !ts[len(ts)-1].Word {
		ts = ts[:len(ts)-1]
	}
	if len(ts) == 0 || len(ts) > longest || slices.ContainsFunc(ts, func(t grammar.Token) bool {
		return !t.Capital() || t.Virtual() || l.lx.Is(t, grammar.NotName|grammar.Speaker|grammar.Other|grammar.Lead)
	}) {
		return ""
	}
	return grammar.Source(ts)
}

// relative is whom a relative pronoun behind a clause means: the name in front of it, who
// is one of a group that was spoken of ("two kids, Mateo who is nine and Julia who is
// six"), else the relation there, else whom the speaker mentioned last.
func (l *language) relative(before *statement, known *people) *person {
	if before == nil {
		return known.recent
	}
	ts, apart := before.Tokens, false
	for len(ts) > 0 && (!ts[len(ts)-1].Word || ts[len(ts)-1].Virtual()) {
		apart = apart || ts[len(ts)-1].Low == ","
		ts = ts[:len(ts)-1]
	}
	if len(ts) == 0 {
		return known.recent
	}
	name := ts[len(ts)-1]
	if rel := l.relationOf[name.Low]; rel != nil && !apart && (known.recent == nil || known.recent.relation != rel) {
		return &person{rel: name.Low, relation: rel} // "Nina and a son who is eight"
	}
	if !name.Capital() || l.lx.Is(name, grammar.NotName|grammar.Speaker) {
		if l.relationOf[name.Low] == nil && !apart {
			return nil
		}
		return known.recent
	}
	switch who := known.byName[name.Low]; {
	case who != nil:
		return who
	case known.recent == nil:
		return nil
	case known.recent.name != "" && strings.HasSuffix(known.recent.name, name.Text):
		return known.recent // "my aunt Rosa Diaz, who…"
	case !strings.HasSuffix(known.recent.rel, "s") && !strings.HasSuffix(known.recent.rel, "ren"):
		return &person{name: name.Text, relation: &Relation{}}
	}
	return &person{name: name.Text, rel: known.recent.rel, relation: known.recent.relation}
}

// sameRelation finds the one person whom a mention without a name means.
func (p *people) sameRelation(who *person) *person {
	if who.name != "" {
		return nil
	}
	if p.recent != nil && p.recent.relation == who.relation {
		return p.recent
	}
	return nil
}

// firstPerson writes the verb that begins ts as the speaker would.
func (l *language) firstPerson(ts []grammar.Token) []grammar.Token {
	out := append([]grammar.Token(nil), ts...)
	for i := 0; i < len(out) && i < 3; i++ {
		base, ok := l.lx.Third[out[i].Low]
		if !ok {
			base, ok = l.uninflected(out[i])
		}
		if ok {
			out[i].Rename(base)
			return out
		}
		between := l.lx.Fillers.At(out, i) > 0 || l.lx.Hedges.At(out, i) > 0 || l.lx.Negators.At(out, i) > 0 ||
			i > 0 && l.lx.Ended.At(out, i-1) > 1 // the second word of "no longer"
		if !between && l.lx.Ended.At(out, i) == 0 {
			return out
		}
	}
	return out
}

// uninflected is the verb of the first person for one of the third that the lexicon does
// not list: "gets", "carries". A pattern must know it.
func (l *language) uninflected(t grammar.Token) (string, bool) {
	if len(l.lx.Inflections) == 0 || l.lx.Words[t.Low] != 0 || t.Capital() || t.Quoted {
		return "", false
	}
	for _, e := range l.lx.Inflections {
		if stem, ok := strings.CutSuffix(t.Low, e.From); ok && len(stem) > 1 && l.lx.Markers[stem+e.To] {
			return stem + e.To, true
		}
	}
	return "", false
}
