package rulepack

import (
	"cmp"
	"slices"
	"strings"

	"palimpsest/internal/extract/rulepack/grammar"
	"palimpsest/internal/extract/rulepack/pattern"
	"palimpsest/pkg/events"
)

// draft turns a match into candidates.
func (r *reading) draft(rule *Rule, m *pattern.Match, who *person, full []grammar.Token) {
	if rule.Silent {
		return
	}
	v := &view{l: r.l, who: who, m: m, old: grammar.Source(r.old)}
	c := events.Candidate{
		Kind: rule.Kind, Category: rule.Category, Subject: who.subject(r.l.lx), Cardinality: rule.Cardinality,
		EvidenceQuote: r.l.evidence(r.text, full), Confidence: rule.Confidence, Explicit: !rule.Implicit,
		Sensitivity: rule.Sensitivity, Transient: rule.Transient || rule.Lasting && r.l.lx.Passing(m.Tokens), Unsafe: rule.Unsafe,
		Hedged: rule.Hedged || m.Flags&pattern.Hedged != 0, EventTime: r.said, RuleID: rule.ID,
	}
	if c.EvidenceQuote == "" || rule.Kind != events.FactProcedural && r.l.addressed(m) {
		return
	}
	if r.technical && (rule.Category == "skill" || rule.Category == "preference" && !r.l.lx.Is(m.Tokens[0], grammar.Speaker)) && r.l.ofTask(m) {
		return // "i use the function twice"
	}
	if rule.Category == "possession" && r.given(full) {
		return // "i ordered a Tesla for my nephew"
	}
	if talk[rule.Category] && (r.technical || r.l.unresolved(m)) || rule.Category == "preference" && r.l.unresolved(m) {
		return
	}
	if r.l.lx.Private(m.Tokens) {
		c.Sensitivity = events.SensitivitySensitive
	}
	if rel, _ := r.l.relationIn(grammar.Source(m.Get("r"))); rel != nil && rule.Predicate == relationPredicate {
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
	for _, item := range r.l.items(m.Get("o")) {
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
func (l *language) addressed(m *pattern.Match) bool {
	lx := l.lx
	for _, s := range m.Captured {
		for _, t := range m.Tokens[s.From:s.To] {
			if lx.Is(t, grammar.Hearer) && !t.Quoted {
				return true
			}
		}
	}
	return false
}

// talk are the categories whose loose patterns also match talk about a task.
var talk = map[string]bool{"goal": true, "event": true, "possession": true, "habit": true}

// ofTask reports whether a capture holds a word of a task: "function".
func (l *language) ofTask(m *pattern.Match) bool {
	lx := l.lx
	for _, s := range m.Captured {
		for i := s.From; i < s.To; i++ {
			if n := lx.Technical.At(m.Tokens, i); n > 0 && n < s.To-s.From {
				return true
			}
		}
	}
	return false
}

// given reports whether a clause says for whom else something is: "for my nephew".
func (r *reading) given(ts []grammar.Token) bool {
	for i := 1; i+1 < len(ts); i++ {
		if ts[i].Low != r.l.lx.Benefit {
			continue
		}
		if who, _ := r.l.mentioned(ts, i+1); who != nil || r.l.lx.Is(ts[i+1], grammar.He|grammar.She) || r.known.byName[ts[i+1].Low] != nil {
			return true
		}
	}
	return false
}

// unresolved reports whether a capture ends in a word for something said before:
// "i want to sort it".
func (l *language) unresolved(m *pattern.Match) bool {
	lx := l.lx
	for _, s := range m.Captured {
		if s.To > s.From && lx.Is(m.Tokens[s.To-1], grammar.It) {
			return true
		}
	}
	return false
}

// longDate is how many tokens of a date stay in an object ("flight on Saturday at 7");
// a longer one would drown the rest of it.
const longDate = 4

// date resolves what date the clause names, and takes it out of the captures.
func (r *reading) date(rule *Rule, m *pattern.Match, c *events.Candidate, v *view) {
	tense := rule.Tense
	if tense == "present" {
		tense = "past" // a state is said to have begun
	}
	w, ok := r.l.lx.When(m.Tokens, r.at, tense)
	if !ok || rule.Undated {
		return
	}
	_, weekday := r.l.lx.Calendar.Weekdays[m.Tokens[w.Span.To-1].Low]
	if rule.Tense == "present" && (weekday && w.Span.To-w.Span.From < 3 && !r.l.lx.Began(m.Tokens[:w.Span.From]) || !w.At.Before(r.at.AddDate(0, 0, -1))) {
		return
	}
	v.when = w.At
	at := w.At.UTC()
	if rule.Tense == "present" || rule.Tense == "past" && (len(rule.Retracts) > 0 || rule.Lone != nil || rule.Polarity == "negative") {
		c.ValidFrom = &at // what ends with it was said before it, and may be said after the date
	} else {
		c.EventTime = at
		if at.After(r.said) {
			said := r.said
			c.ValidFrom = &said // a plan is one as soon as it is told
		}
	}
	for i := range m.Captured {
		got := &m.Captured[i]
		switch {
		case w.Span.From > got.From && w.Span.From < got.To:
			if w.Span.To >= got.To {
				got.To = w.Span.From
			}
		case w.Span.From == got.From && w.Span.To < got.To:
			got.From = w.Span.To
		case w.Span == *got && got.To-got.From > longDate:
			got.To = got.From
		}
	}
}

// emit renders one candidate. A negation turns it into the end of the fact that it
// would state, into a fact of another predicate, or into nothing, according to the
// rule.
func (r *reading) emit(rule *Rule, m *pattern.Match, c events.Candidate, v *view, full []grammar.Token) {
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
	negated := m.Flags&pattern.Negated != 0
	ended := m.Flags&(pattern.Ended|pattern.Past) != 0 && !rule.Absent
	switch {
	case rule.Polarity == "negative" && (negated || ended):
		return
	case rule.Polarity == "negative" && rule.Lone != nil:
		tpl = rule.Lone.apply(v, &c, plain)
	case rule.Polarity == "negative":
		c.Negated = true
	case ended:
		c.Negated = true
		if rule.Ends != "" && m.Flags&pattern.Ended != 0 {
			c.Predicate = rule.Ends
		}
		if tpl = rule.Ended; tpl == "" {
			tpl = r.l.lx.NoLonger + rule.Text
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
	c.Text = grammar.Capitalize(c.Text)
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
	if rel, word := r.l.relationIn(grammar.Source(m.Get("r"))); rel != nil && rule.Predicate == relationPredicate {
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
		predicate, named := v.render(ret.Predicate)
		if object, ok := v.render(ret.Object); named && (ok || ret.Object == "") {
			end(predicate, object)
		}
	}
	if len(r.old) > 0 && c.Cardinality == events.Many && !strings.Contains(c.Object, grammar.Source(r.old)) {
		end(c.Predicate, grammar.Source(r.old))
	}
}

// meet notes the person or animal that a fact introduces: after "i have a dog", "he"
// is the dog.
func (r *reading) meet(c events.Candidate) {
	if c.Subject != subjectUser || !strings.HasPrefix(c.Predicate, "has_") || c.Negated {
		return
	}
	rel, name, _ := strings.Cut(c.Object, " "+r.l.namingWord+" ")
	relation, word := r.l.relationIn(rel)
	if relation == nil && c.Category == "relationship" && r.l.pet != nil && c.Predicate == r.l.pet.Predicate {
		relation, word = r.l.pet, rel // "a bearded dragon, his name is…"
	}
	if relation != nil {
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
func (r *reading) entities(rule *Rule, m *pattern.Match, v *view) []events.Mention {
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
		name := r.l.object(m.Get(e.Capture))
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
	for _, span := range m.Captured {
		ts := m.Tokens[span.From:span.To]
		if v.raw != nil {
			ts = v.raw
		}
		for _, e := range r.l.lx.Names(ts) {
			if v.who == nil && !strings.Contains(e.Name, " ") && span.From < len(m.Tokens) && m.Tokens[0].Virtual() && e.Name == m.Tokens[span.From].Text {
				continue // it may be a capital only because it begins the sentence
			}
			if e.Type == events.EntityPerson {
				e.Type = cmp.Or(categoryType[rule.Category], events.EntityPerson)
			}
			if !has(e.Name) && !grammar.Within(out, e.Name) {
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
