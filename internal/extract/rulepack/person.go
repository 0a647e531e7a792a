package rulepack

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"palimpsest/pkg/events"
)

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
func (p *person) subject(lx *lexicon) string {
	switch {
	case p == nil:
		return subjectUser
	case p.name != "" && p.also == nil:
		return p.name
	}
	return strings.TrimPrefix(strings.ToLower(lx.possessive), "the ") + " " + p.rel
}

const subjectUser = "user"

// nominative and possessive are how Text names them.
func (p *person) nominative(lx *lexicon) string {
	switch {
	case p == nil:
		return lx.subject
	case p.name != "" && p.also == nil:
		return p.name
	}
	return lx.possessive + " " + p.rel
}

func (p *person) possessive(lx *lexicon) string {
	if p == nil {
		return lx.possessive
	}
	return strings.ReplaceAll(lx.otherOwn, "{}", p.nominative(lx))
}

// mentioned finds "my sister Anna" at token i: my, up to two adjectives, the
// relation, and a name with or without "named". n is the number of tokens.
func (l *language) mentioned(ts []token, i int) (who *person, n int) {
	lx := l.lx
	if i == 0 && lx.is(ts[0], isArticle) && len(ts) > 2 {
		if w := l.relations.at(ts, 1); w > 0 {
			if who, n := l.named(ts, 0, 1, w); who.name != "" && who.relation.Category == "pet" {
				return who, n // "the dog, Rufus"
			}
		}
	}
	if i == 0 && lx.is(ts[0], isKinName) && len(ts) > 2 && (lx.is(ts[1], isBe) || lx.third[ts[1].low] != "" || ts[1].low == "'s") {
		if rel := l.relationOf[ts[0].low]; rel != nil {
			return &person{rel: ts[0].low, relation: rel}, 1 // "Dad passed away"
		}
	}
	if !lx.is(ts[i], isOwn) || ts[i].quoted {
		return nil, 0
	}
	for j := i + 1; j < len(ts) && j <= i+3; j++ {
		if w := l.relations.at(ts, j); w > 0 {
			return l.named(ts, i, j, w)
		}
		if !ts[j].word || lx.is(ts[j], isStop|isPreposition|isVerb|isBe|isNegator) {
			return nil, 0
		}
	}
	return nil, 0
}

func (l *language) named(ts []token, i, j, w int) (*person, int) {
	words := make([]string, w)
	for k := range w {
		words[k] = ts[j+k].low
	}
	rel := strings.Join(words, " ")
	who := &person{rel: rel, relation: l.relationOf[rel]}
	end := j + w
	if end < len(ts) && ts[end].low == "'s" {
		return who, end - i
	}
	at := end
	marked := false
	if at < len(ts) && (l.lx.naming[ts[at].low] || ts[at].low == ":") {
		at, marked = at+1, true
	} else if at+1 < len(ts) && ts[at].low == "," && ts[at+1].capital() {
		at++
	}
	if at < len(ts) {
		k := l.lx.nameLen(ts, at, marked)
		if k == 0 && at == end && (l.lx.calledLow(ts, at) && who.relation.Pronoun != "" || l.lx.is(ts[at], isGiven)) {
			k = 1
		}
		if k > 0 && (marked || !l.lx.is(ts[at], isVerb|isBe|isStop)) {
			who.name = title(source(ts[at : at+k]))
			end = at + k
			for name := l.joined(ts, end); name != "" && strings.HasSuffix(who.rel, "s"); name = l.joined(ts, end) {
				who.also = append(who.also, name)
				end += 2
			}
			if end < len(ts) && ts[end].low == "," && at > j+w {
				end++
			}
		}
	}
	return who, end - i
}

// calledLow reports whether a name in lower case stands behind a relation: "my brother
// tom hates cilantro". Before a copula only a known first name counts, since "my dog
// food is gone" is no name.
func (lx *lexicon) calledLow(ts []token, at int) bool {
	t := ts[at]
	if !t.word || t.capital() || digit(t.low) || at+1 >= len(ts) {
		return lx.is(t, isGiven) && t.word
	}
	if lx.is(t, isGiven) {
		return true
	}
	next := ts[at+1]
	verb := lx.third[next.low] != "" && !lx.is(next, isBe|isAuxiliary|isPreposition)
	return verb && lx.words[t.low] == 0 && lx.third[t.low] == "" && !strings.HasSuffix(t.low, "ing") && !strings.HasSuffix(t.low, "ly") && !strings.HasSuffix(t.low, "s")
}

// coupled reads a clause with two relatives for its subject ("my mum and stepdad live in
// Norwich") once for each.
func (r *reading) coupled(c *statement, ts []token, before *statement) bool {
	lx := r.l.lx
	if !lx.is(ts[0], isOwn) {
		return false
	}
	one, n := r.l.mentioned(ts, 0)
	if one == nil || one.also != nil || n+2 >= len(ts) || !lx.is(ts[n], isAnd) {
		return false
	}
	other := slices.Concat(ts[:1], ts[n+1:])
	if lx.is(ts[n+1], isOwn) {
		other = ts[n+1:]
	}
	two, k := r.l.mentioned(other, 0)
	if two == nil || k >= len(other) || lx.third[other[k].low] == "" {
		return false
	}
	first, second := *c, *c
	first.tokens, second.tokens = slices.Concat(ts[:n], other[k:]), other
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
		return n.Negated && n.Predicate == d.Predicate && n.Object != "" && strings.HasSuffix(d.Object, n.Object)
	})
}

// joined is the name behind a comma or "and" at i.
func (l *language) joined(ts []token, i int) string {
	if i+1 >= len(ts) || ts[i].low != "," && !l.lx.is(ts[i], isAnd) || !ts[i+1].capital() || l.lx.is(ts[i+1], isStop|isSpeaker|isOwn|isNotName) {
		return ""
	}
	return ts[i+1].text
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

// resolve turns a clause about another person into one in the first person: "my
// brother Tom hates cilantro" becomes "i hate cilantro", about Tom. ok is false if
// the clause is about no known person.
func (l *language) resolve(ts []token, known *people) (who *person, rest []token, ok bool) {
	lx := l.lx
	if len(ts) < 2 {
		return nil, nil, false
	}
	who, n := l.mentioned(ts, 0)
	switch {
	case who != nil:
		if prior := known.sameRelation(who); prior != nil {
			who = prior
		}
		known.meet(who)
	case lx.is(ts[0], isRelative) && known.recent != nil:
		who, n = known.recent, 1
	case lx.is(ts[0], isHe|isShe) && known.recent != nil:
		p := known.recent.relation.Pronoun
		if p == "she" && !lx.is(ts[0], isShe) || p == "he" && !lx.is(ts[0], isHe) {
			return nil, nil, false
		}
		who, n = known.recent, 1
	case lx.is(ts[0], isTheirs) && known.recent != nil:
		return known.recent, append(virtual(l.ownWord), ts[1:]...), true
	case ts[0].capital() && known.byName[ts[0].low] != nil:
		who, n = known.byName[ts[0].low], 1
	default:
		return nil, nil, false
	}
	if n >= len(ts) {
		return nil, nil, false
	}
	if ts[n].low == "'s" && n+1 < len(ts) {
		if !lx.isCopula(ts, n) {
			return who, append(virtual(l.ownWord), ts[n+1:]...), true
		}
	}
	return who, append(virtual(l.speakerWord), l.firstPerson(ts[n:])...), true
}

// isCopula reports whether the "'s" at i stands for "is" ("my wife's a lawyer",
// "my sister's getting married") rather than for a possessive.
func (lx *lexicon) isCopula(ts []token, i int) bool {
	next := ts[i+1]
	switch {
	case lx.is(next, isArticle|isPreposition|isNegator):
		return true
	case lx.isNumber(next.low) && !ordinal(next.low) && (i+2 == len(ts) || !ts[i+2].word || lx.is(ts[i+2], isAnd|isJoint|isPreposition|isTail)):
		return true // "my son's six"
	case i+2 == len(ts) && i > 0:
		return true // "my mom's American"
	case strings.HasSuffix(next.low, "ing") && !next.capital():
		finite := i+2 < len(ts) && (lx.is(ts[i+2], isBe) || lx.third[ts[i+2].low] != "" && strings.HasSuffix(ts[i+2].low, "s"))
		return !finite
	}
	return false
}

// ordinal reports whether a number is that of a rank: "my dad's 70th".
func ordinal(number string) bool {
	return strings.HasSuffix(number, "th") || strings.HasSuffix(number, "st") || strings.HasSuffix(number, "nd") || strings.HasSuffix(number, "rd")
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
func (l *language) firstPerson(ts []token) []token {
	out := append([]token(nil), ts...)
	for i := 0; i < len(out) && i < 3; i++ {
		base, ok := l.lx.third[out[i].low]
		if !ok {
			base, ok = l.uninflected(out[i])
		}
		if ok {
			out[i].rename(base)
			return out
		}
		between := l.lx.fillers.at(out, i) > 0 || l.lx.hedges.at(out, i) > 0 || l.lx.negators.at(out, i) > 0 ||
			i > 0 && l.lx.ended.at(out, i-1) > 1 // the second word of "no longer"
		if !between && l.lx.ended.at(out, i) == 0 {
			return out
		}
	}
	return out
}

// uninflected is the verb of the first person for one of the third that the lexicon does
// not list: "gets", "carries". A pattern must know it.
func (l *language) uninflected(t token) (string, bool) {
	if len(l.lx.endings3) == 0 || l.lx.words[t.low] != 0 || t.capital() || t.quoted {
		return "", false
	}
	for _, e := range l.lx.endings3 {
		if stem, ok := strings.CutSuffix(t.low, e.From); ok && len(stem) > 1 && l.lx.markers[stem+e.To] {
			return stem + e.To, true
		}
	}
	return "", false
}

// source is the text from the first to the last of the tokens, as typed.
func source(ts []token) string {
	var b strings.Builder
	for i, t := range ts {
		if i > 0 && t.start == ts[i-1].start && t.end == ts[i-1].end && !t.virtual() {
			continue // another part of the same contraction
		}
		if i > 0 && (t.start > ts[i-1].end || t.virtual()) && t.low != "," && t.low != "'s" {
			b.WriteByte(' ')
		}
		b.WriteString(t.text)
	}
	return b.String()
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
		words[i] = capitalize(w)
	}
	return strings.Join(words, " ")
}

func capitalize(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}
