package rulepack

import (
	"cmp"
	"slices"
	"strings"

	"palimpsest/pkg/events"
)

// changes reads the statements of change.
func (r *reading) changes(sentences []sentence) {
	if len(r.l.frames) == 0 || r.scene {
		return
	}
	for i := range sentences {
		r.changeIn(sentences, i)
	}
}

// changeIn reads the statement of change that begins in sentence i, and may end in the
// next.
func (r *reading) changeIn(sentences []sentence, i int) {
	lx := r.l.lx
	if sentences[i].asks {
		return
	}
	ts := sentences[i].tokens
	own := len(ts)
	entered, _ := r.l.enter(ts)
	behind := own - len(entered) // of what opens the sentence
	if own == 0 || own > longestChange || lx.uncertain(ts) {
		return
	}
	ts = ts[:own:own]
	if i+1 < len(sentences) && !sentences[i+1].asks && len(sentences[i+1].tokens) <= longestChange && !lx.uncertain(sentences[i+1].tokens) {
		ts = append(append(ts, token{low: ".", text: "."}), sentences[i+1].tokens...)
	}
	for at := range own {
		if at > 0 && at != behind && ts[at-1].word && !lx.is(ts[at], isSpeaker) && !lx.is(ts[at-1], isJoint) {
			continue // no clause begins here
		}
		for k := range r.l.frames {
			var got framed
			f := &r.l.frames[k]
			if f.at(lx, ts, 0, at, &got) && r.change(f.change, ts, &got) {
				return
			}
		}
	}
}

// longestChange bounds, in tokens, the sentences in which a change is looked for.
const longestChange = 40

// uncertain reports whether a sentence supposes, hedges, plans, repeats what others
// say, or is about code, a text or a game.
func (lx *lexicon) uncertain(ts []token) bool {
	for i, t := range ts {
		if lx.calendar.Months[t.low] > 0 && (i+1 < len(ts) && digit(ts[i+1].low) || i > 0 && lx.is(ts[i-1], isPreposition)) {
			continue // "May 6", "in May"
		}
		if t.quoted || lx.technical.at(ts, i) > 0 || i+1 < len(ts) && lx.is(t, isReporting) && ts[i+1].low == ":" || lx.is(t, isUnreal|isModal) || lx.is(t, isReporting) && i+1 < len(ts) && lx.is(ts[i+1], isSpeaker|isBinder) || lx.hedges.at(ts, i) > 0 || lx.planned.at(ts, i) > 0 {
			return true
		}
	}
	return false
}

// fleets reports whether a sentence tells what is so for a part of a day.
func (lx *lexicon) fleets(ts []token) bool {
	for i := range ts {
		if lx.fleeting.at(ts, i) > 0 {
			return true
		}
	}
	return false
}

// passing reports whether a clause tells what is so for some days: "i am in Rome this
// week". What happened then may last: "i moved to Rome this week".
func (lx *lexicon) passing(ts []token) bool {
	if lx.began(ts) {
		return false
	}
	for i := 1; i < len(ts); i++ {
		if (lx.fleeting.at(ts, i) > 0 || lx.brief.at(ts, i) > 0) && !lx.is(ts[i-1], isPreposition) {
			return true // but not "as of this week"
		}
	}
	return false
}

// share reports whether two values have a word in common: "the night shift", "the day
// shift".
func (lx *lexicon) share(a, b []token) bool {
	return slices.ContainsFunc(a, func(t token) bool {
		return t.word && !lx.is(t, isArticle|isOwn|isPreposition) && slices.ContainsFunc(b, func(u token) bool { return u.low == t.low })
	})
}

// moving reports whether what stands before an old value moves another thing: "we moved
// the customer from".
func (lx *lexicon) moving(ts []token) bool {
	const longest = 5
	n := len(ts) - 1
	return n > 0 && ts[n].low == lx.origin && slices.ContainsFunc(ts[max(0, n-longest):n], func(t token) bool { return lx.is(t, isArticle) })
}

// verbless reports whether a preposition without a verb of its own stands before i: "i am in
// the shower", unlike "i go to boxing".
func (lx *lexicon) verbless(ts []token, i int) bool {
	if i == 0 || !lx.is(ts[i-1], isPreposition) {
		return false
	}
	return i < 2 || !ts[i-2].word || lx.is(ts[i-2], isBe|isSpeaker|isFiller|isLead|isJoint) || lx.nowadays.at(ts, i-2) > 0
}

// change drafts what a match of a frame means.
func (r *reading) change(c *Change, ts []token, got *framed) bool {
	lx := r.l.lx
	value := r.value(ts[got.new.from:got.new.to])
	old := r.value(lx.narrow(ts[got.old.from:got.old.to]))
	topic := got.topic.to > got.topic.from
	if topic {
		old = r.value(ts[got.topic.from:got.topic.to])
	}
	if c.Reply {
		old = r.spokenOf(value)
	}
	if len(value) == 0 || len(old) == 0 || lx.is(value[0], isEmpty|isIt) || lx.is(old[0], isEmpty|isIt|isOther) ||
		topic && !lx.shaped(value) {
		return false
	}
	named := func(ts []token) bool {
		return slices.ContainsFunc(ts, func(t token) bool { return t.capital() || digit(t.low) })
	}
	if !c.Loose && named(old) && !named(value) || slices.EqualFunc(old, value, func(a, b token) bool { return a.low == b.low }) {
		return false
	}
	if c.Lasting && !lx.shaped(value) && lx.fleets(ts) {
		return false
	}
	if c.Loose && !lx.shaped(value) && lx.moving(ts[:got.old.from]) {
		return false
	}
	ends := events.Triple{Subject: subjectUser, Object: source(old)}
	object := source(value)
	r.drafts = slices.DeleteFunc(r.drafts, func(d events.Candidate) bool {
		return c.Reply && lx.shaped(value) && d.Category == "identity" && strings.EqualFold(d.Object, object) // "it's bo@example.com" is no name
	})
	r.drafts = slices.DeleteFunc(r.drafts, func(d events.Candidate) bool {
		return strings.HasPrefix(d.RuleID, "relation.") && r.l.says(d, old) && !r.l.says(d, value) // "Biscuit is gone" has no Biscuit
	})
	weak := lx.verbless(ts, got.new.from) // "i am with Declan now" may be of work, or not
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
	if c.Lasting && weak && got.old.from < got.new.from && !named(value) && !lx.shaped(value) && !lx.share(old, value) {
		return false // "done with yoga, now I'm in the shower"
	}
	cardinality := events.Many
	if c.Single && !lx.shaped(value) {
		cardinality = events.One
	}
	// The move comes first: what else the sentence ends is then no longer known by the
	// old value.
	r.drafts = slices.Insert(r.drafts, 0, events.Candidate{
		Kind: events.FactSemantic, Category: "biography", Subject: subjectUser, Object: object,
		Text: lx.changed(ends.Object, object), EvidenceQuote: r.l.evidence(r.text, ts[min(got.old.from, got.new.from, got.topic.from):max(got.old.to, got.new.to)]),
		Confidence: 0.8, Explicit: true, Sensitivity: events.SensitivityNone, Cardinality: cardinality,
		Retracts: []events.Triple{ends}, Moves: true, EventTime: r.said, RuleID: "change." + c.ID,
	})
	return true
}

// says reports whether the object of a draft has all words of a value.
func (l *language) says(d events.Candidate, value []token) bool {
	have := l.lx.tokenize(d.Object)
	return !slices.ContainsFunc(value, func(t token) bool {
		return t.word && !l.lx.named(t) && !slices.ContainsFunc(have, func(h token) bool { return h.low == t.low })
	})
}

// changed is the sentence that one value took the place of another.
func (lx *lexicon) changed(old, value string) string {
	return strings.NewReplacer("{S}", capitalize(lx.subject), "{old}", old, "{new}", value).Replace(lx.changedText)
}

// value cuts what is no part of a value off its ends.
func (r *reading) value(ts []token) []token {
	lx := r.l.lx
	for len(ts) > 0 && (lx.is(ts[0], isOwn|isPreposition|isArticle) || lx.nowadays.at(ts, 0) == 1) {
		ts = ts[1:]
	}
	return r.l.trim(ts)
}

// narrow cuts what stands around an old value: "my accounts from Barclays", "Sublime in
// months".
func (lx *lexicon) narrow(ts []token) []token {
	for i := len(ts) - 1; i > 0; i-- {
		if ts[i-1].low == lx.origin {
			return ts[i:]
		}
	}
	for i := 1; i < len(ts); i++ {
		if lx.is(ts[i], isPreposition) && ts[i-1].capital() {
			return ts[:i]
		}
	}
	return ts
}

// shaped reports whether a value is a day, a date, a number or an address.
func (lx *lexicon) shaped(ts []token) bool {
	return slices.ContainsFunc(ts, func(t token) bool { return lx.shape(t) != "" })
}

// shape is what kind of value a word is: a day, a number or an address; empty for
// any other.
func (lx *lexicon) shape(t token) string {
	stem := strings.TrimSuffix(t.low, "s")
	if lx.calendar.Months[t.low] > 0 && t.capital() {
		return "date"
	}
	switch {
	case strings.Contains(t.low, "@"):
		return "address"
	case digit(t.low) || t.low[0] == '+' && len(t.low) > 1:
		return "number"
	}
	if _, ok := lx.calendar.Weekdays[t.low]; ok {
		return "day"
	}
	if _, ok := lx.calendar.Weekdays[stem]; ok {
		return "day"
	}
	if _, ok := lx.calendar.Numbers[t.low]; ok && !t.capital() && !lx.is(t, isArticle) {
		return "number"
	}
	return ""
}

// spokenOf is what the turns before name in the place of a value: of the same shape,
// with the noun beside it, or a name for a name.
func (r *reading) spokenOf(value []token) []token {
	lx := r.l.lx
	shape := ""
	for _, t := range value {
		shape = cmp.Or(shape, lx.shape(t))
	}
	if shape == "" && !slices.ContainsFunc(value, token.capital) {
		return nil
	}
	const turns = 2
	for i := len(r.before) - 1; i >= 0 && i >= len(r.before)-turns; i-- {
		ts := lx.tokenize(blank(r.before[i].Content))
		if r.before[i].Role != events.RoleUser && !slices.ContainsFunc(ts, func(t token) bool { return lx.is(t, isHearer) }) {
			continue // "the recipe needs 900 g" tells nothing of the user
		}
		for at := len(ts) - 1; at >= 0; at-- {
			t := ts[at]
			switch {
			case !t.word:
			case shape != "" && lx.shape(t) == shape:
				return r.around(ts, at, shape)
			case shape == "" && at > 0 && t.capital() && !lx.is(t, isSpeaker|isStop|isNotName|isHearer|isAuxiliary|isAsking|isLead):
				from := at
				for from > 1 && ts[from-1].word && ts[from-1].capital() && !lx.is(ts[from-1], isSpeaker|isStop|isNotName|isHearer) {
					from--
				}
				return ts[from : at+1]
			}
		}
	}
	return nil
}

// around is a value and the noun beside it: "Tuesday 's standup".
func (r *reading) around(ts []token, at int, shape string) []token {
	lx := r.l.lx
	if shape == "address" {
		return ts[at : at+1]
	}
	from := at
	for from > 0 && ts[from-1].word && (ts[from-1].capital() || lx.shape(ts[from-1]) != "") && !lx.is(ts[from-1], isSpeaker|isStop|isHearer|isLead) && lx.shape(ts[at]) != "day" {
		from--
	}
	out := slices.Clone(ts[from : at+1])
	if at+2 < len(ts) && ts[at+1].low == "'s" && ts[at+2].word {
		out = append(out, ts[at+2])
	}
	return out
}
