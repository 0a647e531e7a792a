package rulepack

import (
	"maps"
	"slices"
	"strings"
	"time"

	"palimpsest/internal/extract/rulepack/grammar"
	"palimpsest/internal/extract/rulepack/pattern"
	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

func (r *reading) memo(ts []grammar.Token) *pattern.Memo { return pattern.NewMemo(ts, &r.steps) }

// statement is a clause with the person it is about.
type statement struct {
	grammar.Clause
	// about is whom an elided subject stands for; nil for the speaker.
	about *person
	// answers: the words before a bare answer were supplied.
	answers bool
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
	// fresh: no statement stands between the question and the sentence.
	fresh bool
	// technical: the text is about a task.
	technical bool
	// scene: a role play or a joke has begun.
	scene  bool
	last   heard           // what the last match was
	old    []grammar.Token // values that the sentence replaces: "not Corsica"
	topic  []grammar.Token // topic of a short question: "olives?"
	drafts []events.Candidate
	steps  int // left to the text, of its bound
	seen   map[events.Triple]int
	lone   map[events.Triple]bool // drafts of [Rule.Lone]
}

// read drafts candidates from the clauses of a text.
func (r *reading) read(previous *question) {
	lx := r.l.lx
	sentences := lx.Sentences(lx.Tokenize(r.text))
	r.asked, r.fresh = previous, true
	for _, s := range sentences {
		for i := range s.Tokens {
			r.technical = r.technical || lx.Technical.At(s.Tokens, i) > 0
		}
	}
	if previous != nil && len(sentences) > 0 {
		r.answer(sentences[0], previous)
	}
	told := 0 // sentences of the speaker's own
	from, here := 0, 0
	for _, s := range sentences {
		from, here = here, len(r.drafts)
		if lx.Jokes.At(lx.Strip(s.Tokens), 0) > 0 && !s.Asks {
			r.forget(from)
			here = from
			continue
		}
		if s.Asks {
			if r.asked, r.fresh = r.l.questioned([]grammar.Sentence{s}), true; r.asked == nil {
				r.asked = &question{tokens: s.Tokens}
			}
		}
		if lx.OpensTask(s.Tokens) {
			break // the rest is material for the agent to work on
		}
		told++
		r.scene = r.scene || lx.OpensScene(s.Tokens)
		r.old = lx.Replaced(s.Tokens)
		if r.denied(s) || r.raised(s) {
			continue
		}
		if r.judged(s) {
			r.topic = nil
			continue
		}
		var before *statement
		cs := lx.Split(s)
		for i := range cs {
			c := &statement{Clause: cs[i]}
			c.Unreal = c.Unreal || r.scene
			r.role(c, cs[i+1:])
			r.clause(c, before)
			before = c
		}
		r.topic = nil
		r.fresh = s.Asks || r.fresh && len(lx.Strip(s.Tokens)) == 0
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
	ts := c.Tokens
	full := ts
	ts, f := r.l.enter(ts)
	if before != nil {
		if rest, g := r.l.enter(before.Tokens); len(rest) == 0 {
			f |= g // "hey, it's…"
		}
	}
	if before == nil && len(r.topic) > 0 && lx.Is(r.topic[0], grammar.Own) {
		ts = r.l.owned(ts, &statement{Clause: grammar.Clause{Tokens: r.topic}})
	}
	if !slices.ContainsFunc(ts, func(t grammar.Token) bool { return t.Word && !lx.Is(t, grammar.Speaker) }) {
		return // "i i i": a pronoun states nothing, and each would be tried with all patterns
	}
	if c.Question || c.Reported || r.coupled(c, ts, before) || r.corrects(ts, full) || !c.Unreal && r.succeeded(ts, full) {
		return
	}
	if r.affirmed(c, full, ts) {
		return
	}
	ts = lx.Uncleft(lx.Uninverted(lx.Apostrophed(r.mine(ts))))
	verb := 0
	for verb < len(ts)-1 && lx.Is(ts[verb], grammar.Filler) && (before != nil || !lx.Is(ts[verb], grammar.Lead)) {
		verb++
	}
	elided := false
	plain := ts // without the subject of the clause before
	lead := lx.LeadOf(ts)
	if lead == nil {
		lead = lx.LeadOf(ts[verb:])
	}
	if before != nil && before.about == nil && len(full) > 1 && lx.Is(full[0], grammar.And|grammar.Joint) && lx.Third[ts[0].Low] != "" && !r.l.opens(before) && !r.l.carries(before) {
		return // "Tom sold his Volvo and bought a Tesla"
	}
	if lead != nil && r.l.opens(before) && lx.Ordered(ts) {
		return
	}
	if lead != nil && (r.l.opens(before) || before.about == nil && r.l.carries(before)) {
		ts, elided = append(grammar.Virtual(lead...), ts...), true
	}
	ts = r.l.owned(r.antecedent(ts, before), before)
	if elided {
		c.about = nil
	} else if before != nil && !before.Question && !before.Reported && len(ts) > verb && (lx.Is(ts[verb], grammar.Verb) || lx.Negators.At(ts, verb) > 1) && r.l.carries(before) {
		ts = append(grammar.Virtual(append([]string{r.l.speakerWord}, lx.AbleIn(before.Tokens)...)...), ts...)
		c.about = before.about
	} else if before != nil && len(ts) > verb+1 && lx.Is(ts[verb], grammar.Be) && lx.Is(full[0], grammar.And) && before.about == nil && r.l.carries(before) && lx.Third[ts[verb].Low] == lx.Shared {
		ts = append(grammar.Virtual(r.l.speakerWord, lx.Shared), ts[verb+1:]...) // "we changed our minds and are going to…"
	} else if before != nil && before.about != nil && lx.Third[ts[0].Low] != "" {
		c.about = before.about
		ts = append(grammar.Virtual(r.l.speakerWord), r.l.firstPerson(ts)...)
	} else if lx.Is(ts[0], grammar.Own) && r.matchKin(c, full, ts, f) {
		return
	} else if who, n := r.l.mentioned(ts, 0); who != nil && who.name != "" && who.also == nil && lx.Is(ts[0], grammar.Own) && (n >= len(ts) || n == len(ts)-1 && !ts[n].Word) {
		r.known.meet(who)
		c.about = who // "my eldest, Poppy, is starting school"
		if !c.Unreal {
			r.relation(full, who)
		}
		return
	} else if who, rest, ok := r.l.resolve(ts, before, r.known); ok {
		c.about = who
		if !c.Unreal {
			r.relation(full, who)
		}
		ts = rest
	}
	c.Tokens = append(c.Tokens[:len(c.Tokens):len(c.Tokens)], virtualMark(ts)...)
	if !c.Unreal && c.about == nil && !r.apposed(c, before) {
		r.others(full)
		r.within(full)
	}
	from := len(r.drafts)
	done := r.match(c, full, ts, 0, f) || len(ts) < 2 || r.shared(c, full, ts, f)
	if before != nil && len(r.drafts) == from && r.orders(plain, full, f) || done {
		return
	}
	// A leading adverbial: "For plotting I'd take…", "Last week I moved…".
	for i := 1; i < len(ts) && i <= 6; i++ {
		if lx.Is(ts[i], grammar.Own) && lx.Is(ts[i-1], grammar.Preposition) {
			continue // "with my kids i speak…"
		}
		if lx.Is(ts[i], grammar.Speaker|grammar.Own|grammar.Other) {
			if lx.Is(ts[i], grammar.Other) && i+1 < len(ts) && lx.Dated(ts[i:i+2]) {
				continue // "from this week on i…"
			}
			if i == 1 && exclaims(lx, ts[0]) || lx.Is(ts[0], grammar.Preposition|grammar.Binder) || lx.Hedges.At(ts, 0) > 0 || lx.Dated(ts[:i]) {
				if lx.Hedges.At(ts, 0) > 0 {
					f |= pattern.Hedged
				}
				r.scoped(ts[:i], func() { r.match(c, full, ts, i, f) })
			}
			return
		}
	}
	if w, ok := lx.When(ts, r.at, "past"); ok && w.Span.From == 0 && w.Span.To < len(ts) {
		if lead := lx.LeadOf(ts[w.Span.To:]); lead != nil {
			said := append(grammar.Virtual(lead...), ts[w.Span.To:]...) // "вчера сломал руку"
			r.match(c, full, append(said, ts[:w.Span.To]...), 0, f)
			return
		}
		r.match(c, full, ts, w.Span.To, f) // "el mes pasado me mudé a…"
	}
}

// orders reads a clause without a subject as an instruction: "I'm blind, so don't send me
// tables".
func (r *reading) orders(ts, full []grammar.Token, f pattern.Flags) bool {
	if len(ts) == 0 || r.l.lx.Negators.At(ts, 0) == 0 {
		return false
	}
	mo := r.memo(ts)
	for at := 0; at < len(ts); {
		if rule, m := r.l.find(ts, mo, at, f, func(rule *Rule) bool { return rule.Kind == events.FactProcedural }); m != nil {
			r.draft(rule, m, nil, full)
			return true
		}
		n, g := mo.Skip(r.l.lx, at)
		if n == 0 {
			return false
		}
		at, f = at+n, f|g
	}
	return false
}

// scoped reads a clause behind an adverbial. A fact of a named place or game only
// ("in Cyberpunk i drive a Porsche") is not the one value of the speaker's.
func (r *reading) scoped(lead []grammar.Token, read func()) {
	lx := r.l.lx
	from := len(r.drafts)
	read()
	if from > len(r.drafts) || lx.Planned.At(lead, 0) == 0 && (!lx.Is(lead[0], grammar.Locative) || len(lead) < 2 || !lead[1].Capital() || lx.Dated(lead)) {
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
func virtualMark(ts []grammar.Token) []grammar.Token {
	if len(ts) > 0 && ts[0].Virtual() {
		return ts[:1]
	}
	return nil
}

// opens reports whether nothing of weight stands before a clause.
func (l *language) opens(before *statement) bool {
	if before == nil {
		return true
	}
	rest, _ := l.enter(before.Tokens)
	return len(rest) == 0
}

// carries reports whether a clause has a subject that the next may go on with.
func (l *language) carries(before *statement) bool {
	if before.about != nil {
		return true
	}
	for _, t := range before.Tokens {
		if l.lx.Is(t, grammar.Speaker) {
			return true
		}
	}
	return false
}

// enter cuts what stands before a clause and notes a greeting and a hedge.
func (l *language) enter(ts []grammar.Token) ([]grammar.Token, pattern.Flags) {
	lx := l.lx
	var f pattern.Flags
	for len(ts) > 0 {
		switch n := lx.LeadAt(ts); {
		case n == 1 && lx.No[ts[0].Low] && len(ts) > 1 && ts[1].Word && !lx.Is(ts[1], grammar.Speaker|grammar.Own|grammar.Other|grammar.Lead|grammar.Verb|grammar.Negator|grammar.Joint|grammar.Filler):
			return ts, f // "no dairy for me"
		case n > 0:
			if lx.Replies.At(ts, 0) < n { // "no, it is KCl" is no name
				f |= pattern.Greeted
			}
			ts = ts[n:]
		case !ts[0].Word || lx.Is(ts[0], grammar.Joint):
			ts = ts[1:]
		default:
			n := lx.HedgeLeads.At(ts, 0)
			if n == 0 || n >= len(ts) || !lx.Is(ts[n], grammar.Speaker|grammar.Own) {
				return ts, f
			}
			f |= pattern.Hedged
			ts = ts[n:]
		}
	}
	return ts, f
}

// match finds the first rule at a token, and drafts what it means. Fillers and
// hedges in front of the first word are passed over.
func (r *reading) match(c *statement, full, ts []grammar.Token, at int, f pattern.Flags) bool {
	ts = ts[:min(len(ts), pattern.LongestClause)]
	loose := !elided(ts) && !slices.ContainsFunc(ts, func(t grammar.Token) bool { return r.l.lx.Is(t, grammar.Figure) })
	accept := func(rule *Rule) bool {
		return (!c.Unreal || rule.Unreal) && (c.about == nil || !rule.Self) && (loose || rule.Confidence > looseConfidence && (c.answers || rule.Predicate != "name"))
	}
	mo := r.memo(ts)
	for at < len(ts) {
		if rule, m := r.l.find(ts, mo, at, f, accept); m != nil {
			if c.Hedged {
				m.Flags |= pattern.Hedged
			}
			r.last = heard{m: m, about: c.about, drafts: len(r.drafts)}
			r.draft(rule, m, c.about, full)
			if too, n := r.l.findAlso(rule, ts, mo, at, f); n != nil {
				r.draft(too, n, c.about, full)
			}
			r.more(c, full, rule, m, at)
			return true
		}
		n, g := mo.Skip(r.l.lx, at)
		if n == 0 {
			return false
		}
		at += n
		f |= g
	}
	return false
}

// elided reports whether the subject of a clause was supplied with its verb.
func elided(ts []grammar.Token) bool { return len(ts) > 1 && ts[0].Virtual() && ts[1].Virtual() }

// looseConfidence is that of rules which take anything for their object.
const looseConfidence = 0.75

// matchKin tries the rules that read "my sister's name is…" whole.
func (r *reading) matchKin(c *statement, full, ts []grammar.Token, f pattern.Flags) bool {
	if c.Unreal {
		return false
	}
	rule, m := r.l.find(ts, r.memo(ts), 0, f, func(rule *Rule) bool { return rule.Kin })
	if m == nil {
		return false
	}
	r.draft(rule, m, nil, full)
	return true
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
