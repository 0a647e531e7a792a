package grammar

import (
	"cmp"
	"maps"
	"slices"
)

// Overlay is a lexicon with the words of another pack of its language.
func (l Lexicon) Overlay(over Lexicon) Lexicon {
	out := l
	for _, f := range [...]struct{ to, from *[]string }{
		{&out.Speaker, &over.Speaker},
		{&out.Own, &over.Own},
		{&out.Others, &over.Others},
		{&out.Verbs, &over.Verbs},
		{&out.Leads, &over.Leads},
		{&out.Fillers, &over.Fillers},
		{&out.Stops, &over.Stops},
		{&out.Empty, &over.Empty},
		{&out.NotNames, &over.NotNames},
		{&out.Unreal, &over.Unreal},
		{&out.Reporting, &over.Reporting},
		{&out.Particles, &over.Particles}, {&out.Orders, &over.Orders}, {&out.Pleas, &over.Pleas},
		{&out.Sources, &over.Sources}, {&out.Jokes, &over.Jokes}, {&out.Able, &over.Able}, {&out.Tails, &over.Tails},
		{&out.Prized, &over.Prized}, {&out.Planned, &over.Planned}, {&out.Fleeting, &over.Fleeting}, {&out.Brief, &over.Brief}, {&out.Replies, &over.Replies},
		{&out.Asides, &over.Asides}, {&out.Crowd, &over.Crowd}, {&out.Only, &over.Only}, {&out.Indefinite, &over.Indefinite}, {&out.Asked, &over.Asked}, {&out.Given, &over.Given},
	} {
		*f.to = append(slices.Clone(*f.to), *f.from...)
	}
	out.Changed, out.Origin, out.Benefit = cmp.Or(over.Changed, l.Changed), cmp.Or(over.Origin, l.Origin), cmp.Or(over.Benefit, l.Benefit)
	out.Elided = append(slices.Clone(l.Elided), over.Elided...)
	for _, f := range [...]struct{ to, from *map[string]string }{
		{&out.Contractions, &over.Contractions}, {&out.Rephrase, &over.Rephrase}, {&out.Rewrite, &over.Rewrite}, {&out.Third, &over.Third},
	} {
		all := maps.Clone(*f.to)
		if all == nil {
			all = map[string]string{}
		}
		maps.Copy(all, *f.from)
		*f.to = all
	}
	return out
}
