package rulepack

import (
	"strings"

	"palimpsest/pkg/events"
)

// draft turns a match into candidates.
func (r *reading) draft(rule *Rule, m *match, who *person, full []token) {
	if rule.Silent {
		return
	}
	v := &view{l: r.l, who: who, m: m}
	c := events.Candidate{
		Kind: rule.Kind, Category: rule.Category, Subject: who.subject(r.l.lx), Cardinality: rule.Cardinality,
		EvidenceQuote: r.l.evidence(r.text, full), Confidence: rule.Confidence, Explicit: !rule.Implicit,
		Sensitivity: rule.Sensitivity, Transient: rule.Transient, Unsafe: rule.Unsafe,
		Hedged: rule.Hedged || m.flags&flagHedged != 0, EventTime: r.said, RuleID: rule.ID,
	}
	if c.EvidenceQuote == "" {
		return
	}
	if c.Hedged {
		c.Confidence = min(c.Confidence, 0.5)
	}
	r.date(rule, m, &c, v)
	if !rule.List {
		r.emit(rule, m, c, v)
		return
	}
	for _, item := range r.l.items(m.get("o")) {
		v.raw = item
		if v.item = r.l.object(item); v.item != "" {
			r.emit(rule, m, c, v)
		}
	}
}

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
	if rule.Tense == "present" && !w.at.Before(r.at.AddDate(0, 0, -1)) {
		return
	}
	v.when = w.at
	at := w.at.UTC()
	if rule.Tense == "present" {
		c.ValidFrom = &at
	} else {
		c.EventTime = at
	}
	for i := range m.captured {
		got := &m.captured[i]
		if w.span.from > got.from && w.span.from < got.to {
			if w.span.to >= got.to {
				got.to = w.span.from
			}
		} else if w.span.from == got.from && w.span.to < got.to {
			got.from = w.span.to
		}
	}
}

// emit renders one candidate. A negation makes it the end of what it would
// say, another predicate's fact, or nothing, as the rule has it.
func (r *reading) emit(rule *Rule, m *match, c events.Candidate, v *view) {
	var ok bool
	if v.obj, ok = v.render(rule.Object); !ok && rule.Polarity != "negative" {
		return
	}
	c.Object = v.obj
	if c.Predicate, ok = v.render(rule.Predicate); !ok {
		return
	}
	tpl := rule.Text
	negated := m.flags&flagNegated != 0
	ended := m.flags&(flagEnded|flagPast) != 0
	switch {
	case rule.Polarity == "negative" && (negated || ended):
		return
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
	for _, ret := range rule.Retracts {
		if c.Negated {
			break
		}
		object, ok := v.render(ret.Object)
		if ok || ret.Object == "" {
			c.Retracts = append(c.Retracts, events.Triple{Subject: c.Subject, Predicate: ret.Predicate, Object: object})
		}
	}
	c.Entities = r.entities(rule, m, v)
	r.add(c)
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
		out = append(out, mentionOf(v.who.name, or(v.who.relation.Type, events.EntityPerson)))
	}
	for _, e := range rule.Entities {
		name := r.l.object(m.get(e.Capture))
		if e.Capture == "o" && v.item != "" {
			name = v.item
		}
		if name = title(name); name != "" && !has(name) {
			out = append(out, mentionOf(name, e.Type))
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
				e.Type = or(categoryType[rule.Category], events.EntityPerson)
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
