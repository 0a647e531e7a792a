package rulepack

import (
	"slices"
	"strings"

	"palimpsest/internal/extract/rulepack/grammar"
	"palimpsest/pkg/events"
)

// role reads what the speaker says that they are in front of a clause, which it cuts off:
// "as a nurse, i work nights" states "i am a nurse" too.
func (r *reading) role(c *statement, behind []grammar.Clause) {
	lx := r.l.lx
	ts, f := r.l.enter(c.Tokens)
	n := lx.Roles.At(ts, 0)
	if n == 0 || ts[0].Quoted || c.Unreal || c.Reported {
		return
	}
	const longestRole = 9
	to := n
	for to < len(ts) && to-n < longestRole && ts[to].Low != "," && !lx.Is(ts[to], grammar.Speaker|grammar.Own|grammar.Auxiliary|grammar.Unreal) {
		to++
	}
	after := slices.Clone(ts[to:])
	for _, b := range behind {
		after = append(after, b.Tokens...)
	}
	mine := slices.ContainsFunc(after[:min(len(after), 6)], func(t grammar.Token) bool { return lx.Is(t, grammar.Speaker|grammar.Own) })
	const terse = 2 // words of a lead that says no more than "as a"
	if lx.Wished(after[:min(len(after), 4)]) {
		c.Unreal = true
		return
	}
	if to == n || !mine && n <= terse {
		return
	}
	said := grammar.Virtual(lx.Speaker, lx.Shared)
	if last := ts[n-1]; lx.Is(last, grammar.Article) {
		said = append(said, last)
	}
	said = append(said, ts[n:to]...)
	if lx.Is(ts[n-1], grammar.Relative) {
		said = append(grammar.Virtual(lx.Speaker), r.l.firstPerson(ts[n:to])...) // "as someone who works nights"
	}
	r.match(&statement{}, c.Tokens, said, 0, f)
	c.Tokens = ts[to:]
}

// person is another person, or an animal, that clauses are about.
type person struct {
	name     string // as typed; empty where only the relation is known
	rel      string // the relation's word
	relation *Relation
	also     []string // the names that follow: "my cats, Pip and Squeak"
}

// people are the persons that the current turns named.
type people struct {
	byName map[string]*person
	recent *person
}

func newPeople() *people { return &people{byName: make(map[string]*person)} }

func (p *people) meet(who *person) {
	if who.name != "" {
		p.byName[strings.ToLower(who.name)] = who
	}
	p.recent = who
}

// subject is how Candidate.Subject names them.
func (p *person) subject(lx *grammar.Grammar) string {
	switch {
	case p == nil:
		return subjectUser
	case p.name != "" && p.also == nil:
		return p.name
	}
	return strings.TrimPrefix(strings.ToLower(lx.Possessive), "the ") + " " + p.rel
}

const subjectUser = "user"

// nominative and possessive are how Text names them.
func (p *person) nominative(lx *grammar.Grammar) string {
	switch {
	case p == nil:
		return lx.Subject
	case p.name != "" && p.also == nil:
		return p.name
	}
	return lx.Possessive + " " + p.rel
}

func (p *person) possessive(lx *grammar.Grammar) string {
	if p == nil {
		return lx.Possessive
	}
	return strings.ReplaceAll(lx.OtherOwn, "{}", p.nominative(lx))
}

// mentioned finds "my sister Anna" at token i: my, up to two adjectives, the
// relation, and a name with or without "named". n is the number of tokens.
func (l *language) mentioned(ts []grammar.Token, i int) (who *person, n int) {
	lx := l.lx
	if i == 0 && lx.Is(ts[0], grammar.Article) && len(ts) > 2 {
		if w := l.relations.At(ts, 1); w > 0 {
			if who, n := l.named(ts, 0, 1, w); who.name != "" && who.relation.Category == "pet" {
				return who, n // "the dog, Rufus"
			}
		}
	}
	if i == 0 && lx.Is(ts[0], grammar.KinName) && len(ts) > 2 && (lx.Is(ts[1], grammar.Be) || lx.Third[ts[1].Low] != "" || ts[1].Low == "'s") {
		if rel := l.relationOf[ts[0].Low]; rel != nil {
			return &person{rel: ts[0].Low, relation: rel}, 1 // "Dad passed away"
		}
	}
	if !lx.Is(ts[i], grammar.Own) || ts[i].Quoted {
		return nil, 0
	}
	if i == 0 && len(ts) > 2 && ts[1].Capital() && lx.Is(ts[1], grammar.Given) && (lx.Is(ts[2], grammar.Be) || lx.Third[ts[2].Low] != "") {
		return &person{name: ts[1].Text, relation: &Relation{}}, 2 // "our Milo is five"
	}
	for j := i + 1; j < len(ts) && j <= i+3; j++ {
		if w := l.relations.At(ts, j); w > 0 {
			return l.named(ts, i, j, w)
		}
		if !ts[j].Word || lx.Is(ts[j], grammar.Stop|grammar.Preposition|grammar.Verb|grammar.Be|grammar.Negator) {
			return nil, 0
		}
	}
	return nil, 0
}

func (l *language) named(ts []grammar.Token, i, j, w int) (*person, int) {
	words := make([]string, w)
	for k := range w {
		words[k] = ts[j+k].Low
	}
	rel := strings.Join(words, " ")
	who := &person{rel: rel, relation: l.relationOf[rel]}
	end := j + w
	if end < len(ts) && ts[end].Low == "'s" {
		return who, end - i
	}
	at := end
	marked := false
	if at < len(ts) && (l.lx.Naming[ts[at].Low] || ts[at].Low == ":") {
		at, marked = at+1, true
	} else if at+1 < len(ts) && ts[at].Low == "," && ts[at+1].Capital() {
		at++
	}
	if at < len(ts) {
		k := l.lx.NameLen(ts, at, marked)
		if k == 0 && at == end && (l.lx.CalledLow(ts, at) && who.relation.Pronoun != "" || l.lx.BesideSpeaker(ts, at) || l.lx.Is(ts[at], grammar.Given)) {
			k = 1
		}
		if k > 0 && (marked || !l.lx.Is(ts[at], grammar.Verb|grammar.Be|grammar.Stop)) {
			who.name = title(grammar.Source(ts[at : at+k]))
			end = at + k
			for name := l.joined(ts, end); name != "" && strings.HasSuffix(who.rel, "s"); name = l.joined(ts, end) {
				who.also = append(who.also, name)
				end += 2
			}
			if end < len(ts) && ts[end].Low == "," && at > j+w {
				end++
			}
		}
	}
	return who, end - i
}

// coupled reads a clause with two relatives for its subject ("my mum and stepdad live in
// Norwich") once for each.
func (r *reading) coupled(c *statement, ts []grammar.Token, before *statement) bool {
	lx := r.l.lx
	if !lx.Is(ts[0], grammar.Own) {
		return false
	}
	one, n := r.l.mentioned(ts, 0)
	if one == nil || one.also != nil || n+2 >= len(ts) || !lx.Is(ts[n], grammar.And) {
		return false
	}
	other := slices.Concat(ts[:1], ts[n+1:])
	if lx.Is(ts[n+1], grammar.Own) {
		other = ts[n+1:]
	}
	two, k := r.l.mentioned(other, 0)
	if two == nil || k >= len(other) || lx.Third[other[k].Low] == "" {
		return false
	}
	first, second := *c, *c
	first.Tokens, second.Tokens = slices.Concat(ts[:n], other[k:]), other
	r.clause(&first, before)
	r.clause(&second, before)
	return true
}

func (r *reading) seenPerson(who *person) bool {
	for _, d := range r.drafts {
		if d.Subject == subjectUser && d.Predicate == who.relation.Predicate && (who.name == "" || strings.Contains(d.Object, who.name)) {
			return true
		}
	}
	return false
}

// mourned reports whether a draft says that the speaker has whom another says to be gone:
// "we lost our old lab, Hank".
func (r *reading) mourned(d events.Candidate) bool {
	return strings.HasPrefix(d.RuleID, "relation.") && !d.Negated && slices.ContainsFunc(r.drafts, func(n events.Candidate) bool {
		return n.Negated && n.Predicate == d.Predicate && n.Object != "" && strings.HasSuffix(d.Object, n.Object) ||
			slices.Contains(n.Retracts, events.Triple{Subject: d.Subject, Predicate: d.Predicate})
	})
}

// unnamed reports whether a draft says that the speaker has someone of whom another draft
// tells the name: "Luna is my cat".
func (r *reading) unnamed(d events.Candidate) bool {
	rel := r.l.relationOf[d.Object]
	return rel != nil && strings.HasPrefix(d.RuleID, "relation.") && slices.ContainsFunc(r.drafts, func(n events.Candidate) bool {
		return n.Predicate == d.Predicate && n.Subject == d.Subject && !n.Negated && r.l.relationOf[n.Object] == nil &&
			(rel.Category != "pet" || strings.HasPrefix(n.Object, d.Object+" "))
	})
}

// joined is the name behind a comma or "and" at i.
func (l *language) joined(ts []grammar.Token, i int) string {
	if i+1 >= len(ts) || ts[i].Low != "," && !l.lx.Is(ts[i], grammar.And) || !ts[i+1].Capital() || l.lx.Is(ts[i+1], grammar.Stop|grammar.Speaker|grammar.Own|grammar.NotName) {
		return ""
	}
	return ts[i+1].Text
}

// relationIn finds the relation that a phrase ends in, and its word.
func (l *language) relationIn(phrase string) (*Relation, string) {
	for word := strings.ToLower(phrase); word != ""; _, word, _ = strings.Cut(word, " ") {
		if rel := l.relationOf[word]; rel != nil {
			return rel, word
		}
	}
	return nil, ""
}

// title writes names and places that were typed in lower case with capitals.
func title(s string) string {
	if strings.ToLower(s) != s {
		return s
	}
	words := strings.Fields(s)
	for i, w := range words {
		if i > 0 && len(w) <= 3 && (w == "of" || w == "the" || w == "and" || w == "de" || w == "in") {
			continue
		}
		words[i] = grammar.Capitalize(w)
	}
	return strings.Join(words, " ")
}

// relation drafts the fact that the speaker has a relative, friend or pet.
func (r *reading) relation(full []grammar.Token, who *person) {
	for _, name := range who.also {
		r.relation(full, &person{name: name, rel: who.rel, relation: who.relation})
	}
	if who.relation == nil || who.relation.Predicate == "" || r.seenPerson(who) {
		return
	}
	rel := who.relation
	if who.name == "" && rel.Quiet {
		return
	}
	tpl, object := rel.Text, who.rel
	var mentions []events.Mention
	if who.name != "" {
		tpl, object = rel.Named, who.name
		if rel.Category == "pet" {
			object = who.rel + " " + r.l.namingWord + " " + who.name
		}
		mentions = []events.Mention{{Name: who.name, Type: rel.Type}}
	}
	if rel.Category == "pet" && strings.HasSuffix(who.rel, "s") {
		tpl = strings.Replace(tpl, " a {rel}", " {rel}", 1) // "has cats"
	}
	text := strings.NewReplacer("{rel}", who.rel, "{name}", who.name, "{S}", r.l.lx.Subject, "{S's}", r.l.lx.Possessive).Replace(tpl)
	category := rel.Category
	if category == "pet" {
		category = "relationship"
	}
	r.add(events.Candidate{
		Kind: events.FactSemantic, Category: category, Subject: subjectUser, Predicate: rel.Predicate, Object: object,
		Text: grammar.Capitalize(text), EvidenceQuote: r.l.evidence(r.text, full), Confidence: 0.85, Explicit: true,
		Sensitivity: events.SensitivityNone, Cardinality: rel.Cardinality, EventTime: r.said, Entities: mentions,
		RuleID: "relation." + rel.Predicate,
	})
}

// others drafts whom a clause mentions beside its subject: "with my wife Ida".
func (r *reading) others(ts []grammar.Token) {
	for i := range ts {
		if who, n := r.l.mentioned(ts, i); who != nil {
			r.known.meet(who)
			first := slices.ContainsFunc(ts[i:i+n], func(t grammar.Token) bool { return r.l.lx.Calendar.Ordinals[t.Low] == 1 })
			if who.name != "" || !who.relation.Quiet && !first { // "expecting our first baby", "met my first wife"
				r.relation(ts, who)
			}
		}
	}
}
