package rulepack

import (
	"cmp"
	"slices"
	"strings"

	"palimpsest/pkg/events"
)

// draft turns a match into candidates.
func (r *reading) draft(rule *Rule, m *match, who *person, full []token) {
	if rule.Silent {
		return
	}
	v := &view{l: r.l, who: who, m: m, old: source(r.old)}
	c := events.Candidate{
		Kind: rule.Kind, Category: rule.Category, Subject: who.subject(r.l.lx), Cardinality: rule.Cardinality,
		EvidenceQuote: r.l.evidence(r.text, full), Confidence: rule.Confidence, Explicit: !rule.Implicit,
		Sensitivity: rule.Sensitivity, Transient: rule.Transient || rule.Lasting && r.l.lx.passing(m.ts), Unsafe: rule.Unsafe,
		Hedged: rule.Hedged || m.flags&flagHedged != 0, EventTime: r.said, RuleID: rule.ID,
	}
	if c.EvidenceQuote == "" || rule.Kind != events.FactProcedural && r.l.addressed(m) {
		return
	}
	if r.technical && (rule.Category == "skill" || rule.Category == "preference" && !r.l.lx.is(m.ts[0], isSpeaker)) && r.l.ofTask(m) {
		return // "i use the function twice"
	}
	if rule.Category == "possession" && r.given(full) {
		return // "i ordered a Tesla for my nephew"
	}
	if talk[rule.Category] && (r.technical || r.l.unresolved(m)) || rule.Category == "preference" && r.l.unresolved(m) {
		return
	}
	if r.l.lx.private(m.ts) {
		c.Sensitivity = events.SensitivitySensitive
	}
	if rel, _ := r.l.relationIn(source(m.get("r"))); rel != nil && rule.Predicate == relationPredicate {
		c.Cardinality, c.Category = rel.Cardinality, rel.Category
		if rel.Category == "pet" {
			c.Category = "relationship"
		}
	}
	if c.Hedged {
		c.Confidence = min(c.Confidence, 0.5)
	}
	r.date(rule, m, &c, v)
	if !rule.List {
		r.emit(rule, m, c, v, full)
		return
	}
	for _, item := range r.l.items(m.get("o")) {
		if !r.l.fits(rule, item) {
			continue
		}
		v.raw = item
		if v.item = r.l.object(item); v.item != "" {
			r.emit(rule, m, c, v, full)
		}
	}
}

// relationPredicate is the predicate of rules that name a relative.
const relationPredicate = "{r|relation}"

// addressed reports whether a capture speaks of the agent: "i like your answer".
func (l *language) addressed(m *match) bool {
	lx := l.lx
	for _, s := range m.captured {
		for _, t := range m.ts[s.from:s.to] {
			if lx.is(t, isHearer) && !t.quoted {
				return true
			}
		}
	}
	return false
}

// talk are the categories whose loose patterns also match talk about a task.
var talk = map[string]bool{"goal": true, "event": true, "possession": true, "habit": true}

// ofTask reports whether a capture holds a word of a task: "function".
func (l *language) ofTask(m *match) bool {
	lx := l.lx
	for _, s := range m.captured {
		for i := s.from; i < s.to; i++ {
			if n := lx.technical.at(m.ts, i); n > 0 && n < s.to-s.from {
				return true
			}
		}
	}
	return false
}

// given reports whether a clause says for whom else something is: "for my nephew".
func (r *reading) given(ts []token) bool {
	for i := 1; i+1 < len(ts); i++ {
		if ts[i].low != r.l.lx.benefit {
			continue
		}
		if who, _ := r.l.mentioned(ts, i+1); who != nil || r.l.lx.is(ts[i+1], isHe|isShe) || r.known.byName[ts[i+1].low] != nil {
			return true
		}
	}
	return false
}

// unresolved reports whether a capture ends in a word for something said before:
// "i want to sort it".
func (l *language) unresolved(m *match) bool {
	lx := l.lx
	for _, s := range m.captured {
		if s.to > s.from && lx.is(m.ts[s.to-1], isIt) {
			return true
		}
	}
	return false
}

// private reports whether a clause has a word that makes it sensitive.
func (lx *lexicon) private(ts []token) bool {
	for i, t := range ts {
		if lx.sensitive.at(ts, i) > 0 || endsIn(lx.sensitive, t.low) {
			return true
		}
	}
	return false
}

// began reports whether the verb behind the speaker is in the past: "i turned 30
// on Monday", unlike "i work on Monday".
func (lx *lexicon) began(ts []token) bool {
	for i := 1; i < len(ts); i++ {
		if !lx.is(ts[i-1], isSpeaker) {
			continue
		}
		for i < len(ts)-1 && lx.is(ts[i], isFiller) {
			i++
		}
		base, ok := lx.third[ts[i].low]
		return ok && base == ts[i].low && !lx.is(ts[i], isAuxiliary)
	}
	return false
}

// longDate is how many tokens of a date stay in an object ("flight on Saturday at 7");
// a longer one would drown the rest of it.
const longDate = 4

// date resolves what date the clause names, and takes it out of the captures.
func (r *reading) date(rule *Rule, m *match, c *events.Candidate, v *view) {
	tense := rule.Tense
	if tense == "present" {
		tense = "past" // a state is said to have begun
	}
	w, ok := r.l.lx.when(m.ts, r.at, tense)
	if !ok || rule.Undated {
		return
	}
	_, weekday := r.l.lx.calendar.Weekdays[m.ts[w.span.to-1].low]
	if rule.Tense == "present" && (weekday && w.span.to-w.span.from < 3 && !r.l.lx.began(m.ts[:w.span.from]) || !w.at.Before(r.at.AddDate(0, 0, -1))) {
		return
	}
	v.when = w.at
	at := w.at.UTC()
	if rule.Tense == "present" || rule.Tense == "past" && (len(rule.Retracts) > 0 || rule.Lone != nil) {
		c.ValidFrom = &at // what ends with it was said before it, and may be said after the date
	} else {
		c.EventTime = at
	}
	for i := range m.captured {
		got := &m.captured[i]
		switch {
		case w.span.from > got.from && w.span.from < got.to:
			if w.span.to >= got.to {
				got.to = w.span.from
			}
		case w.span.from == got.from && w.span.to < got.to:
			got.from = w.span.to
		case w.span == *got && got.to-got.from > longDate:
			got.to = got.from
		}
	}
}

// emit renders one candidate. A negation turns it into the end of the fact that it
// would state, into a fact of another predicate, or into nothing, according to the
// rule.
func (r *reading) emit(rule *Rule, m *match, c events.Candidate, v *view, full []token) {
	var ok bool
	if v.obj, ok = v.render(rule.Object); !ok && rule.Polarity != "negative" {
		return
	}
	c.Object = v.obj
	if c.Predicate, ok = v.render(rule.Predicate); !ok {
		return
	}
	tpl := rule.Text
	plain := events.Triple{Subject: c.Subject, Predicate: c.Predicate, Object: c.Object}
	negated := m.flags&flagNegated != 0
	ended := m.flags&(flagEnded|flagPast) != 0 && !rule.Absent
	switch {
	case rule.Polarity == "negative" && (negated || ended):
		return
	case rule.Polarity == "negative" && rule.Lone != nil:
		tpl = rule.Lone.apply(v, &c, plain)
	case rule.Polarity == "negative":
		c.Negated = true
	case ended:
		c.Negated = true
		if rule.Ends != "" && m.flags&flagEnded != 0 {
			c.Predicate = rule.Ends
		}
		if tpl = rule.Ended; tpl == "" {
			tpl = r.l.lx.noLonger + rule.Text
		}
	case negated && (rule.Denied == nil || rule.Denied.Drop):
		return
	case negated && rule.Denied.Object != "":
		tpl = rule.Denied.apply(v, &c, plain)
	case negated:
		tpl = rule.Denied.Text
		if rule.Denied.Predicate != "" {
			c.Predicate = rule.Denied.Predicate
		} else {
			c.Negated = true
		}
	}
	if c.Text, ok = v.render(tpl); !ok {
		return
	}
	c.Text = capitalize(c.Text)
	r.retract(rule, &c, v)
	c.Entities = r.entities(rule, m, v)
	if rule.Lone != nil {
		r.lone[events.Triple{Subject: c.Subject, Predicate: c.Predicate, Object: c.Object}] = true
	}
	if who := v.who; c.Predicate == "name" && who != nil && who.name == "" && !c.Negated {
		named := *who
		named.name = c.Object // "his name is Otto", of the dog
		r.known.meet(&named)
		r.relation(full, &named)
		return
	}
	r.add(c)
	r.meet(c)
	if rel, word := r.l.relationIn(source(m.get("r"))); rel != nil && rule.Predicate == relationPredicate {
		r.known.meet(&person{rel: word, relation: rel, name: c.Object})
	}
}

// retract adds the triples that end with a candidate: those of its rule, and a value
// that the sentence contrasts with its own ("to Malta, not Crete").
func (r *reading) retract(rule *Rule, c *events.Candidate, v *view) {
	if c.Negated {
		return
	}
	end := func(predicate, object string) {
		t := events.Triple{Subject: c.Subject, Predicate: predicate, Object: object}
		if !slices.Contains(c.Retracts, t) {
			c.Retracts = append(c.Retracts, t)
		}
	}
	for _, ret := range rule.Retracts {
		if object, ok := v.render(ret.Object); ok || ret.Object == "" {
			end(ret.Predicate, object)
		}
	}
	if len(r.old) > 0 && c.Cardinality == events.Many && !strings.Contains(c.Object, source(r.old)) {
		end(c.Predicate, source(r.old))
	}
}

// meet notes the person or animal that a fact introduces: after "i have a dog", "he"
// is the dog.
func (r *reading) meet(c events.Candidate) {
	if c.Subject != subjectUser || !strings.HasPrefix(c.Predicate, "has_") || c.Negated {
		return
	}
	rel, name, _ := strings.Cut(c.Object, " "+r.l.namingWord+" ")
	if relation, word := r.l.relationIn(rel); relation != nil {
		r.known.meet(&person{rel: word, relation: relation, name: name})
	}
}

// apply makes a candidate the fact that d describes, which ends plain. It returns
// the template of the text.
func (d *Denial) apply(v *view, c *events.Candidate, plain events.Triple) string {
	c.Predicate = cmp.Or(d.Predicate, c.Predicate)
	if object, ok := v.render(d.Object); ok {
		c.Object = object
	}
	if d.Category != "" {
		c.Category = d.Category
	}
	c.Cardinality = events.Many
	c.Retracts = []events.Triple{plain}
	return d.Text
}

// entities are those that the rule's captures name, the person it is about, and
// names in the object.
func (r *reading) entities(rule *Rule, m *match, v *view) []events.Mention {
	var out []events.Mention
	has := func(name string) bool {
		for _, e := range out {
			if e.Name == name {
				return true
			}
		}
		return false
	}
	if v.who != nil && v.who.name != "" {
		out = append(out, events.Mention{Name: v.who.name, Type: cmp.Or(v.who.relation.Type, events.EntityPerson)})
	}
	for _, e := range rule.Entities {
		name := r.l.object(m.get(e.Capture))
		if e.Capture == "o" && v.item != "" {
			name = v.item
		}
		if name = title(name); name != "" && !has(name) {
			out = append(out, events.Mention{Name: name, Type: e.Type})
		}
	}
	if rule.Kind == events.FactProcedural {
		return out
	}
	for _, span := range m.captured {
		ts := m.ts[span.from:span.to]
		if v.raw != nil {
			ts = v.raw
		}
		for _, e := range r.l.lx.names(ts) {
			if v.who == nil && !strings.Contains(e.Name, " ") && span.from < len(m.ts) && m.ts[0].virtual() && e.Name == m.ts[span.from].text {
				continue // it may be a capital only because it begins the sentence
			}
			if e.Type == events.EntityPerson {
				e.Type = cmp.Or(categoryType[rule.Category], events.EntityPerson)
			}
			if !has(e.Name) && !within(out, e.Name) {
				out = append(out, e)
			}
		}
	}
	return out
}

// categoryType is what a bare name in a fact of that category is taken for.
var categoryType = map[string]events.EntityType{
	"preference": events.EntityConcept, "skill": events.EntityTool, "project": events.EntityProject,
	"work": events.EntityOrganization, "education": events.EntityOrganization, "possession": events.EntityProduct,
	"event": events.EntityEvent, "goal": events.EntityConcept, "habit": events.EntityConcept, "health": events.EntityConcept,
	"identity": events.EntityConcept, "opinion": events.EntityConcept, "instruction": events.EntityConcept,
}
