package rulepack

import (
	"maps"
	"slices"
	"strings"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// statement is a clause and whom it is about.
type statement struct {
	clause
	// about is whom an elided subject stands for; nil for the speaker.
	about *person
}

// reading is one episode as one language reads it.
type reading struct {
	l      *language
	text   string
	at     time.Time // with the offset that relative dates count from
	said   time.Time
	known  *people
	before []memory.Episode
	asked  *question
	// technical: the text is about a task.
	technical bool
	// scene: a role play or a joke has begun.
	scene  bool
	last   heard   // what the last match was
	old    []token // values that the sentence replaces: "not Corsica"
	topic  []token // topic of a short question: "olives?"
	drafts []events.Candidate
	steps  int // left to the text, of its bound
	seen   map[events.Triple]int
	lone   map[events.Triple]bool // drafts of [Rule.Lone]
}

// read drafts candidates from the clauses of a text.
func (r *reading) read(previous *question) {
	lx := r.l.lx
	sentences := lx.sentences(lx.tokenize(r.text))
	r.asked = previous
	for _, s := range sentences {
		for i := range s.tokens {
			r.technical = r.technical || lx.technical.at(s.tokens, i) > 0
		}
	}
	if previous != nil && len(sentences) > 0 {
		r.answer(sentences[0], previous)
	}
	told := 0 // sentences of the speaker's own
	from, here := 0, 0
	for _, s := range sentences {
		from, here = here, len(r.drafts)
		if lx.jokes.at(lx.strip(s.tokens), 0) > 0 && !s.asks {
			r.forget(from)
			here = from
			continue
		}
		if s.asks {
			r.asked = &question{tokens: s.tokens}
		}
		if lx.sets(s.tokens) {
			break // the rest is material for the agent to work on
		}
		told++
		r.scene = r.scene || lx.opensScene(s.tokens)
		r.old = lx.replaced(s.tokens)
		if r.denied(s) || r.raised(s) {
			continue
		}
		if r.judged(s) {
			r.topic = nil
			continue
		}
		var before *statement
		cs := lx.split(s)
		for i := range cs {
			c := &statement{clause: cs[i]}
			c.unreal = c.unreal || r.scene
			r.role(c, cs[i+1:])
			r.clause(c, before)
			before = c
		}
		r.topic = nil
	}
	r.fold()
	r.changes(sentences[:told])
	for i := range r.drafts {
		r.drafts[i].Retracts = endings(r.drafts[i].Retracts)
	}
}

// forget takes back the drafts from one on: the speaker was joking.
func (r *reading) forget(from int) {
	maps.DeleteFunc(r.seen, func(_ events.Triple, i int) bool { return i >= from })
	r.drafts = r.drafts[:from]
}

// clause reads one clause; before is the one in front of it in its sentence.
func (r *reading) clause(c, before *statement) {
	lx := r.l.lx
	ts := c.tokens
	full := ts
	ts, f := r.l.enter(ts)
	if before != nil {
		if rest, g := r.l.enter(before.tokens); len(rest) == 0 {
			f |= g // "hey, it's…"
		}
	}
	if before == nil && len(r.topic) > 0 && lx.is(r.topic[0], isOwn) {
		ts = r.l.owned(ts, &statement{clause: clause{tokens: r.topic}})
	}
	if len(ts) == 0 || c.question || c.reported || r.coupled(c, ts, before) || r.corrects(ts, full) || !c.unreal && r.succeeded(ts, full) {
		return
	}
	ts = lx.uncleft(lx.uninverted(lx.apostrophed(r.mine(ts))))
	verb := 0
	for verb < len(ts)-1 && lx.is(ts[verb], isFiller) && (before != nil || !lx.is(ts[verb], isLead)) {
		verb++
	}
	elided := false
	lead := lx.leadOf(ts)
	if lead == nil {
		lead = lx.leadOf(ts[verb:])
	}
	if before != nil && before.about == nil && len(full) > 1 && lx.is(full[0], isAnd|isJoint) && lx.third[ts[0].low] != "" && !r.l.opens(before) && !r.l.carries(before) {
		return // "Tom sold his Volvo and bought a Tesla"
	}
	if lead != nil && r.l.opens(before) && lx.ordered(ts) {
		return
	}
	if lead != nil && (r.l.opens(before) || before.about == nil && r.l.carries(before)) {
		ts, elided = append(virtual(lead...), ts...), true
	}
	ts = r.l.owned(r.antecedent(ts), before)
	if elided {
		c.about = nil
	} else if before != nil && !before.question && !before.reported && len(ts) > verb && lx.is(ts[verb], isVerb) && r.l.carries(before) {
		ts = append(virtual(append([]string{r.l.speakerWord}, lx.ableIn(before.tokens)...)...), ts...)
		c.about = before.about
	} else if before != nil && len(ts) > verb+1 && lx.is(ts[verb], isBe) && lx.is(full[0], isAnd) && before.about == nil && r.l.carries(before) && lx.third[ts[verb].low] == lx.shared {
		ts = append(virtual(r.l.speakerWord, lx.shared), ts[verb+1:]...) // "we changed our minds and are going to…"
	} else if before != nil && before.about != nil && lx.third[ts[0].low] != "" {
		c.about = before.about
		ts = append(virtual(r.l.speakerWord), r.l.firstPerson(ts)...)
	} else if lx.is(ts[0], isOwn) && r.matchKin(c, full, ts, f) {
		return
	} else if who, n := r.l.mentioned(ts, 0); who != nil && who.name != "" && who.also == nil && lx.is(ts[0], isOwn) && (n >= len(ts) || n == len(ts)-1 && !ts[n].word) {
		r.known.meet(who)
		c.about = who // "my eldest, Poppy, is starting school"
		if !c.unreal {
			r.relation(full, who)
		}
		return
	} else if who, rest, ok := r.l.resolve(ts, r.known); ok {
		c.about = who
		if !c.unreal {
			r.relation(full, who)
		}
		ts = rest
	}
	c.tokens = append(c.tokens[:len(c.tokens):len(c.tokens)], virtualMark(ts)...)
	if !c.unreal && c.about == nil && !r.apposed(c, before) {
		r.others(full)
	}
	if r.match(c, full, ts, 0, f) || len(ts) < 2 || r.shared(c, full, ts, f) {
		return
	}
	// A leading adverbial: "For plotting I'd take…", "Last week I moved…".
	for i := 1; i < len(ts) && i <= 6; i++ {
		if lx.is(ts[i], isSpeaker|isOwn|isOther) {
			if lx.is(ts[i], isOther) && i+1 < len(ts) && lx.dated(ts[i:i+2]) {
				continue // "from this week on i…"
			}
			if lx.is(ts[0], isPreposition|isBinder) || lx.hedges.at(ts, 0) > 0 || lx.dated(ts[:i]) {
				if lx.hedges.at(ts, 0) > 0 {
					f |= flagHedged
				}
				r.scoped(ts[:i], func() { r.match(c, full, ts, i, f) })
			}
			return
		}
	}
	if w, ok := lx.when(ts, r.at, "past"); ok && w.span.from == 0 && w.span.to < len(ts) {
		if lead := lx.leadOf(ts[w.span.to:]); lead != nil {
			said := append(virtual(lead...), ts[w.span.to:]...) // "вчера сломал руку"
			r.match(c, full, append(said, ts[:w.span.to]...), 0, f)
			return
		}
		r.match(c, full, ts, w.span.to, f) // "el mes pasado me mudé a…"
	}
}

// scoped reads a clause behind an adverbial. What is so in a named place or game only
// ("in Cyberpunk i drive a Porsche") is not the one value of the speaker's.
func (r *reading) scoped(lead []token, read func()) {
	lx := r.l.lx
	from := len(r.drafts)
	read()
	if from > len(r.drafts) || lx.planned.at(lead, 0) == 0 && (!lx.is(lead[0], isLocative) || len(lead) < 2 || !lead[1].capital() || lx.dated(lead)) {
		return
	}
	kept := r.drafts[:from]
	for _, d := range r.drafts[from:] {
		if d.Cardinality != events.One {
			kept = append(kept, d)
		}
	}
	r.drafts = kept
}

// virtualMark keeps the subject that was supplied visible to the next clause.
func virtualMark(ts []token) []token {
	if len(ts) > 0 && ts[0].virtual() {
		return ts[:1]
	}
	return nil
}

// opens reports whether nothing of weight stands before a clause.
func (l *language) opens(before *statement) bool {
	if before == nil {
		return true
	}
	rest, _ := l.enter(before.tokens)
	return len(rest) == 0
}

// carries reports whether a clause has a subject that the next may go on with.
func (l *language) carries(before *statement) bool {
	if before.about != nil {
		return true
	}
	for _, t := range before.tokens {
		if l.lx.is(t, isSpeaker) {
			return true
		}
	}
	return false
}

// dated reports whether the tokens hold a date.
func (lx *lexicon) dated(ts []token) bool {
	_, ok := lx.when(ts, time.Unix(0, 0).UTC(), "past")
	return ok
}

// enter cuts what stands before a clause and notes a greeting and a hedge.
func (l *language) enter(ts []token) ([]token, flags) {
	lx := l.lx
	var f flags
	for len(ts) > 0 {
		switch n := lx.leads.at(ts, 0); {
		case n == 1 && lx.no[ts[0].low] && len(ts) > 1 && ts[1].word && !lx.is(ts[1], isSpeaker|isOwn|isOther|isLead|isVerb|isNegator|isJoint|isFiller):
			return ts, f // "no dairy for me"
		case n > 0:
			if lx.replies.at(ts, 0) < n { // "no, it is KCl" is no name
				f |= flagGreeted
			}
			ts = ts[n:]
		case !ts[0].word || lx.is(ts[0], isJoint):
			ts = ts[1:]
		default:
			n := lx.hedgeLeads.at(ts, 0)
			if n == 0 || n >= len(ts) || !lx.is(ts[n], isSpeaker|isOwn) {
				return ts, f
			}
			f |= flagHedged
			ts = ts[n:]
		}
	}
	return ts, f
}

// match finds the first rule at a token, and drafts what it means. Fillers and
// hedges in front of the first word are passed over.
func (r *reading) match(c *statement, full, ts []token, at int, f flags) bool {
	ts = ts[:min(len(ts), longestClause)]
	loose := !elided(ts) && !slices.ContainsFunc(ts, func(t token) bool { return r.l.lx.is(t, isFigure) })
	accept := func(rule *Rule) bool {
		return (!c.unreal || rule.Unreal) && (c.about == nil || !rule.Self) && (loose || rule.Confidence > looseConfidence && rule.Predicate != "name")
	}
	mo := r.memo(ts)
	for at < len(ts) {
		if rule, m := r.l.find(ts, mo, at, f, accept); m != nil {
			if c.hedged {
				m.flags |= flagHedged
			}
			r.last = heard{m: m, about: c.about, drafts: len(r.drafts)}
			r.draft(rule, m, c.about, full)
			r.more(c, full, rule, m, at)
			return true
		}
		n, g := mo.skip(r.l.lx, at)
		if n == 0 {
			return false
		}
		at += n
		f |= g
	}
	return false
}

// elided reports whether the subject of a clause was supplied with its verb.
func elided(ts []token) bool { return len(ts) > 1 && ts[0].virtual() && ts[1].virtual() }

// looseConfidence is that of rules which take anything for their object.
const looseConfidence = 0.75

// matchKin tries the rules that read "my sister's name is…" whole.
func (r *reading) matchKin(c *statement, full, ts []token, f flags) bool {
	if c.unreal {
		return false
	}
	rule, m := r.l.find(ts, r.memo(ts), 0, f, func(rule *Rule) bool { return rule.Kin })
	if m == nil {
		return false
	}
	r.draft(rule, m, nil, full)
	return true
}

// relation drafts the fact that the speaker has a relative, friend or pet.
func (r *reading) relation(full []token, who *person) {
	for _, name := range who.also {
		r.relation(full, &person{name: name, rel: who.rel, relation: who.relation})
	}
	if who.relation == nil || r.seenPerson(who) {
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
	text := strings.NewReplacer("{rel}", who.rel, "{name}", who.name, "{S}", r.l.lx.subject, "{S's}", r.l.lx.possessive).Replace(tpl)
	category := rel.Category
	if category == "pet" {
		category = "relationship"
	}
	r.add(events.Candidate{
		Kind: events.FactSemantic, Category: category, Subject: subjectUser, Predicate: rel.Predicate, Object: object,
		Text: capitalize(text), EvidenceQuote: r.l.evidence(r.text, full), Confidence: 0.85, Explicit: true,
		Sensitivity: events.SensitivityNone, Cardinality: rel.Cardinality, EventTime: r.said, Entities: mentions,
		RuleID: "relation." + rel.Predicate,
	})
}

// others drafts whom a clause mentions beside its subject: "with my wife Ida".
func (r *reading) others(ts []token) {
	for i := range ts {
		if who, _ := r.l.mentioned(ts, i); who != nil {
			r.known.meet(who)
			if who.name != "" || !who.relation.Quiet {
				r.relation(ts, who)
			}
		}
	}
}

// add keeps the first of drafts with the same triple and polarity.
func (r *reading) add(c events.Candidate) {
	key := events.Triple{Subject: c.Subject, Predicate: c.Predicate, Object: strings.ToLower(c.Object)}
	if i, ok := r.seen[key]; ok && r.drafts[i].Negated == c.Negated {
		return
	}
	r.seen[key] = len(r.drafts)
	r.drafts = append(r.drafts, c)
}
