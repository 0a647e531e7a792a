package rulepack

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"palimpsest/internal/extract/rulepack/grammar"
	"palimpsest/pkg/events"
)

// changes reads the statements of change.
func (r *reading) changes(sentences []grammar.Sentence) {
	if len(r.l.frames) == 0 || r.scene {
		return
	}
	for i := range sentences {
		r.changeIn(sentences, i)
	}
}

// changeIn reads the statement of change that begins in sentence i, and may end in the
// next.
func (r *reading) changeIn(sentences []grammar.Sentence, i int) {
	lx := r.l.lx
	if sentences[i].Asks {
		return
	}
	ts := sentences[i].Tokens
	own := len(ts)
	entered, _ := r.l.enter(ts)
	behind := own - len(entered) // of what opens the sentence
	if own == 0 || own > longestChange {
		return
	}
	ts = ts[:own:own]
	if lx.Uncertain(ts) {
		r.ends(ts, own, behind, false)
		return
	}
	if i+1 < len(sentences) && !sentences[i+1].Asks && len(sentences[i+1].Tokens) <= longestChange && !lx.Uncertain(sentences[i+1].Tokens) {
		ts = append(append(ts, grammar.Token{Low: ".", Text: "."}), sentences[i+1].Tokens...)
	}
	r.ends(ts, own, behind, r.framed(ts, own, behind))
}

// framed reads a change whose values stand in one pattern.
func (r *reading) framed(ts []grammar.Token, own, behind int) bool {
	lx := r.l.lx
	for at := range own {
		if at != behind && !r.l.begins(ts, at) && !lx.Is(ts[at], grammar.Speaker) {
			continue // no clause begins here
		}
		for k := range r.l.frames {
			var got framed
			f := &r.l.frames[k]
			if f.at(lx, ts, 0, at, &got) && r.change(f.change, ts, &got) {
				return true
			}
		}
	}
	return false
}

// begins reports whether a clause begins at a token.
func (l *language) begins(ts []grammar.Token, at int) bool {
	return at == 0 || !ts[at-1].Word && ts[at].Word || l.lx.Is(ts[at-1], grammar.Joint)
}

// ends reads the end of a value in the first tokens of ts, with the beginning of another
// before it or behind it, or alone. Of a sentence whose change was read, it reads only
// what else takes the place of a value.
func (r *reading) ends(ts []grammar.Token, own, behind int, changed bool) {
	lx := r.l.lx
	for at := range own {
		if at != behind && !r.l.begins(ts, at) {
			continue
		}
		for k := range r.l.endings {
			var got framed
			f := &r.l.endings[k]
			if !f.at(lx, ts, 0, at, &got) || lx.Uncertain(ts[:got.end]) || r.l.belongs(ts[got.old.From:got.old.To]) || lx.Indefinite[ts[got.old.From].Low] {
				continue
			}
			r.succeeds(ts, &got)
			if changed && r.replaces(ts, &got) || r.successor(f.change, ts, at, &got) || !changed && got.end <= own && r.closes(f.change, ts[:got.end], ts[got.end:own], &got) {
				return
			}
		}
	}
}

// opens reports whether a sentence begins at a token, with a capital that tells nothing.
func opens(ts []grammar.Token, at int) bool {
	return at == 0 || strings.ContainsAny(ts[at-1].Low, ".!?…")
}

// belongs reports whether a value is another's: "his Vespa", "Sunita's boss", but not
// "Gold's Gym".
func (l *language) belongs(ts []grammar.Token) bool {
	if l.lx.Is(ts[0], grammar.Theirs) {
		return true
	}
	for i := range len(ts) - 1 {
		if ts[i].Low == "'s" && !ts[i+1].Capital() {
			return true
		}
	}
	return false
}

// replaces reports whether a change has the old value already.
func (r *reading) replaces(ts []grammar.Token, got *framed) bool {
	old := grammar.Source(r.value(r.l.lx.Narrow(ts[got.old.From:got.old.To])))
	return slices.ContainsFunc(r.drafts, func(d events.Candidate) bool {
		return slices.ContainsFunc(d.Retracts, func(t events.Triple) bool { return t.Predicate == "" && strings.EqualFold(t.Object, old) })
	})
}

// succeeds lets what else the speaker says take the place of a value that ends, where it
// is of the same attribute.
func (r *reading) succeeds(ts []grammar.Token, got *framed) {
	old := r.value(r.l.lx.Narrow(ts[got.old.From:got.old.To]))
	if len(old) == 0 || r.l.lx.Is(old[0], grammar.Empty|grammar.It|grammar.Other) {
		return
	}
	for i := range r.drafts {
		d := &r.drafts[i]
		if d.Negated || d.Subject != subjectUser || d.Predicate == "" || d.Cardinality == events.One || d.Category == "event" || d.Kind == events.FactProcedural || r.l.says(*d, old) {
			continue
		}
		d.Retracts = append(d.Retracts, events.Triple{Subject: subjectUser, Predicate: d.Predicate, Object: grammar.Source(old)})
	}
}

// successor reads the value that takes the place of one that ends: "the ThinkPad gave up
// the ghost, luckily work gave me a MacBook".
func (r *reading) successor(c *Change, ts []grammar.Token, at int, ends *framed) bool {
	lx := r.l.lx
	for from := range ts {
		if from >= at && from < ends.end || !r.l.begins(ts, from) {
			continue
		}
		for k := range r.l.beginnings {
			var got framed
			f := &r.l.beginnings[k]
			if !f.at(lx, ts, 0, from, &got) || from < at && got.end > at || lx.Uncertain(ts[got.new.From:]) && from >= at {
				continue
			}
			if got.old = ends.old; r.change(c, ts, &got) {
				return true
			}
		}
	}
	return false
}

// closes drafts the end of a value without a new one.
func (r *reading) closes(c *Change, ts, rest []grammar.Token, got *framed) bool {
	lx := r.l.lx
	old := r.value(lx.Narrow(ts[got.old.From:got.old.To]))
	if !c.Alone || len(old) == 0 || lx.Is(old[0], grammar.Empty|grammar.It|grammar.Other) || lx.Shaped(old) || lx.Fleets(ts) || lx.Fleets(rest) || lx.Uncertain(rest) {
		return false
	}
	object := grammar.Source(old)
	for i := range r.drafts {
		d := &r.drafts[i]
		switch {
		case d.Subject != subjectUser || !r.l.says(*d, old):
		case d.Negated || d.Category == "event" || r.lone[events.Triple{Subject: d.Subject, Predicate: d.Predicate, Object: d.Object}]:
			d.Retracts = append(d.Retracts, events.Triple{Subject: subjectUser, Object: object})
			return true
		}
	}
	r.add(events.Candidate{
		Kind: events.FactSemantic, Category: "biography", Subject: subjectUser, Object: object, Negated: true,
		Text: lx.NoLonger + object, EvidenceQuote: r.l.evidence(r.text, ts[got.old.From:got.old.To]),
		Confidence: 0.8, Explicit: true, Sensitivity: events.SensitivityNone, Cardinality: events.Many, EventTime: r.said, RuleID: "ending." + c.ID,
	})
	return true
}

// longestChange bounds, in tokens, the sentences in which a change is looked for.
const longestChange = 40

// change drafts what a match of a frame means.
func (r *reading) change(c *Change, ts []grammar.Token, got *framed) bool {
	lx := r.l.lx
	value := r.value(ts[got.new.From:got.new.To])
	old := r.value(lx.Narrow(ts[got.old.From:got.old.To]))
	topic := got.topic.To > got.topic.From
	if topic {
		if lx.Is(ts[got.topic.From], grammar.Preposition) {
			return false // "moved from Tuesday to Thursday" has another subject
		}
		old = r.value(ts[got.topic.From:got.topic.To])
	}
	if c.Reply {
		old = r.spokenOf(value)
	}
	for i := got.old.From; i+1 < got.old.To; i++ {
		if lx.Is(ts[i], grammar.Preposition) && ts[i].Low != lx.Bearing && !ts[i+1].Capital() && !lx.Is(ts[i+1], grammar.Article|grammar.Own) {
			return false // "sold my cello to pay for the boiler"
		}
	}
	if len(value) == 0 || len(old) == 0 || lx.Is(value[0], grammar.Empty|grammar.It) || lx.Is(old[0], grammar.Empty|grammar.It|grammar.Other) ||
		topic && !lx.Shaped(value) {
		return false
	}
	named := func(ts []grammar.Token) bool {
		return slices.ContainsFunc(ts, func(t grammar.Token) bool {
			return strings.ContainsFunc(t.Text, unicode.IsUpper) || grammar.Digit(t.Low)
		})
	}
	if !c.Loose && !named(value) && got.old.To > 0 && opens(ts, got.old.From) && !named(old[1:]) {
		old = slices.Clone(old) // "Geology was a mistake": the decider knows whether it is a name
		old[0].Text = strings.ToLower(old[0].Text)
	}
	if !c.Loose && named(old) && !named(value) || slices.EqualFunc(old, value, func(a, b grammar.Token) bool { return a.Low == b.Low }) {
		return false
	}
	if c.Lasting && !lx.Shaped(value) && lx.Fleets(ts) {
		return false
	}
	if c.Loose && !lx.Shaped(value) && lx.Moving(ts[:got.old.From]) {
		return false
	}
	ends := events.Triple{Subject: subjectUser, Object: grammar.Source(old)}
	object := grammar.Source(value)
	r.drafts = slices.DeleteFunc(r.drafts, func(d events.Candidate) bool {
		return c.Reply && lx.Shaped(value) && d.Category == "identity" && strings.EqualFold(d.Object, object) // "it's bo@example.com" is no name
	})
	r.drafts = slices.DeleteFunc(r.drafts, func(d events.Candidate) bool {
		return strings.HasPrefix(d.RuleID, "relation.") && r.l.says(d, old) && !r.l.says(d, value) // "Biscuit is gone" has no Biscuit
	})
	weak := lx.Verbless(ts, got.new.From) // "i am with Declan now" may be of work, or not
	for i := range r.drafts {
		d := &r.drafts[i]
		if d.Kind == events.FactProcedural && r.l.says(*d, value) {
			return true // "use Go instead of Bash" is for the agent
		}
		if d.Negated || d.Subject != subjectUser || d.Category == "event" || !r.l.says(*d, value) {
			continue
		}
		if c.Reply && d.Cardinality == events.One {
			return true // it replaces what is known
		}
		if c.Single {
			ends.Predicate = d.Predicate
		}
		d.Retracts, d.Transient = append(d.Retracts, ends), false
		d.Moves = d.Moves || ends.Predicate == "" && (c.Loose && strings.EqualFold(d.Object, object) || weak)
		return true
	}
	if c.Lasting && weak && got.old.From < got.new.From && !named(value) && !lx.Shaped(value) && !lx.Share(old, value) {
		return false // "done with yoga, now I'm in the shower"
	}
	cardinality := events.Many
	if c.Single && !lx.Shaped(value) {
		cardinality = events.One
	}
	// The move comes first: what else the sentence ends is then no longer known by the
	// old value.
	r.drafts = slices.Insert(r.drafts, 0, events.Candidate{
		Kind: events.FactSemantic, Category: "biography", Subject: subjectUser, Object: object,
		Text: lx.Changed(ends.Object, object), EvidenceQuote: r.l.evidence(r.text, ts[min(got.old.From, got.new.From, got.topic.From):max(got.old.To, got.new.To)]),
		Confidence: 0.8, Explicit: true, Sensitivity: events.SensitivityNone, Cardinality: cardinality,
		Retracts: []events.Triple{ends}, Moves: true, EventTime: r.said, RuleID: "change." + c.ID,
	})
	return true
}

// says reports whether the object of a draft has all words of a value.
func (l *language) says(d events.Candidate, value []grammar.Token) bool {
	have := l.lx.Tokenize(d.Object)
	return !slices.ContainsFunc(value, func(t grammar.Token) bool {
		return t.Word && !l.lx.Named(t) && !slices.ContainsFunc(have, func(h grammar.Token) bool { return h.Low == t.Low })
	})
}

// value cuts what is no part of a value off its ends.
func (r *reading) value(ts []grammar.Token) []grammar.Token {
	lx := r.l.lx
	for len(ts) > 0 && (lx.Is(ts[0], grammar.Own|grammar.Preposition|grammar.Article) || lx.Nowadays.At(ts, 0) == 1) {
		ts = ts[1:]
	}
	return r.l.trim(ts)
}

// spokenOf is what the turns before name in the place of a value: of the same shape,
// with the noun beside it, or a name for a name.
func (r *reading) spokenOf(value []grammar.Token) []grammar.Token {
	lx := r.l.lx
	shape := ""
	for _, t := range value {
		shape = cmp.Or(shape, lx.Shape(t))
	}
	if shape == "" && !slices.ContainsFunc(value, grammar.Token.Capital) {
		return nil
	}
	const turns = 2
	for i := len(r.before) - 1; i >= 0 && i >= len(r.before)-turns; i-- {
		ts := lx.Tokenize(blank(r.before[i].Content))
		if r.before[i].Role != events.RoleUser && !slices.ContainsFunc(ts, func(t grammar.Token) bool { return lx.Is(t, grammar.Hearer) }) {
			continue // "the recipe needs 900 g" tells nothing of the user
		}
		for at := len(ts) - 1; at >= 0; at-- {
			t := ts[at]
			switch {
			case !t.Word:
			case shape != "" && lx.Shape(t) == shape:
				return r.around(ts, at, shape)
			case shape == "" && at > 0 && t.Capital() && !lx.Is(t, grammar.Speaker|grammar.Stop|grammar.NotName|grammar.Hearer|grammar.Auxiliary|grammar.Asking|grammar.Lead):
				from := at
				for from > 1 && ts[from-1].Word && ts[from-1].Capital() && !lx.Is(ts[from-1], grammar.Speaker|grammar.Stop|grammar.NotName|grammar.Hearer) {
					from--
				}
				return ts[from : at+1]
			}
		}
	}
	return nil
}

// around is a value and the noun beside it: "Tuesday 's standup".
func (r *reading) around(ts []grammar.Token, at int, shape string) []grammar.Token {
	lx := r.l.lx
	if shape == "address" {
		return ts[at : at+1]
	}
	from := at
	for from > 0 && ts[from-1].Word && (ts[from-1].Capital() || lx.Shape(ts[from-1]) != "") && !lx.Is(ts[from-1], grammar.Speaker|grammar.Stop|grammar.Hearer|grammar.Lead) && lx.Shape(ts[at]) != "day" {
		from--
	}
	out := slices.Clone(ts[from : at+1])
	if at+2 < len(ts) && ts[at+1].Low == "'s" && ts[at+2].Word {
		out = append(out, ts[at+2])
	}
	return out
}
