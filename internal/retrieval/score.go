package retrieval

import (
	"context"
	"math"
	"slices"

	"palimpsest/internal/memory"
	"palimpsest/pkg/scope"
)

// contextLeg names, in Degraded, the reading of neighbours.
const contextLeg = "context"

// score ranks the hits of the legs by features of each hit and of its neighbours.
// ok is false if the neighbours could not be read.
func (e *Engine) score(ctx context.Context, q Query, legs []leg) (hits []Hit, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, e.config.Deadline)
	defer cancel()
	p, failed := e.measured(ctx, q, legs)
	ranked := make([]*candidate, 0, len(p.all))
	for _, c := range p.all {
		c.score = logistic(c.values.score(e.config))
	}
	for _, c := range p.all {
		if c.from != nil {
			c.score = min(c.score, p.ceiling(c))
			c.partial = !p.whole(c)
		}
		if c.score >= q.MinScore && p.eligible(c) {
			ranked = append(ranked, c)
		}
	}
	t := e.config.ties(q.Now)
	slices.SortFunc(ranked, func(a, b *candidate) int { return t.compare(&a.fused, &b.fused) })
	ranked = e.diverse(ranked, q.Limit)
	if err := p.complete(ctx, ranked); err != nil {
		failed = err
	}
	for _, c := range ranked {
		if c.hit.Fact == nil && c.hit.Episode == nil {
			continue // it is gone, or could not be read
		}
		hit := c.result(legs)
		if hit.LentBy = c.lent; q.Explain {
			hit.Features = c.values.explain(e.config)
		}
		hits = append(hits, hit)
	}
	return hits, failed == nil
}

// ceiling is the least score of the turns that a fact comes from, less what turns out of
// sight take from their mean: a fact of many turns ranks above those of them that say
// something else, too, and would bring them before turns that answer.
func (p *pool) ceiling(c *candidate) float64 {
	f := c.hit.Fact
	sum, least, turns := 0.0, 1.0, len(f.SourceEpisodeIDs)
	for _, id := range f.SourceEpisodeIDs {
		switch e := p.byID[sourceID{f.Scope, id}]; {
		case e == nil:
		case c.outdates(e):
			turns--
		default:
			sum, least = sum+e.score, min(least, e.score)
		}
	}
	return min(least, sum/float64(turns))
}

// whole reports whether a fact alone is an answer: its predicate is what the question asks
// for, and it has the words of the question and the kinds of values asked for that its turn
// has. "The user owns a new phone" is no answer to "what phone do I have".
func (p *pool) whole(c *candidate) bool {
	f, turn := c.hit.Fact, c.from
	if c.values[askedFor] < 1 || turn.match.own&^c.match.own != 0 {
		return false
	}
	wanted := p.asked.kinds & turn.doc.kinds
	return wanted == 0 || wanted&^kindsIn(f.Text, p.engine.facts.of(f).terms) == 0
}

// measured returns the hits of the legs and their neighbours with their features.
// They are usable beside an error: some neighbours are missing then.
func (e *Engine) measured(ctx context.Context, q Query, legs []leg) (*pool, error) {
	p := e.pool(q, legs)
	err := p.widen(ctx)
	p.lend()
	p.measure()
	return p, err
}

// eligible reports whether a neighbour is within what was asked for; what a leg
// found is. With a filter no neighbour is: its episode is not read before the ranking.
func (p *pool) eligible(c *candidate) bool {
	if c.key != "" {
		return true
	}
	if p.query.Filter != nil {
		return false
	}
	at := c.doc.at
	return (p.query.After.IsZero() || at.After(p.query.After)) && (p.query.Before.IsZero() || at.Before(p.query.Before))
}

// complete reads the neighbours among the answers.
func (p *pool) complete(ctx context.Context, ranked []*candidate) error {
	missing := map[scope.Scope][]uint64{}
	for _, c := range ranked {
		if c.key == "" {
			missing[c.at.scope] = append(missing[c.at.scope], c.at.ordinal)
		}
	}
	return p.readAt(ctx, missing, func(e *memory.Episode) {
		if c := p.at[placeOf(e)]; c != nil {
			c.hit.Episode = e
		}
	})
}

// stated are the features that a fact gives to the turns that it comes from.
var stated = []feature{factText, factVector, factCoverage, factLikeness, askedFor, subject}

// outdone are those that count by what a fact has beyond its turn: what both have is
// in the features of the turn.
var outdone = []struct{ fact, turn feature }{{factText, ownText}, {factVector, ownVector}, {factCoverage, coverage}, {factLikeness, nearLikeness}}

// beyond leaves of a fact's features what the turn does not have.
func (v *values) beyond(turn *values) {
	for _, f := range outdone {
		v[f.fact] = max(0, v[f.fact]-turn[f.turn])
	}
}

// aloneShare is what the features of a fact count where its turn is not known, beside
// the fact's own text.
const aloneShare = 0.25

// lend measures the facts and lets them count for their turns: a turn has the features
// of its best fact.
func (p *pool) lend() {
	for _, f := range p.all {
		if f.hit.Fact == nil {
			continue
		}
		v := &f.values
		v[factText], v[factVector] = f.text, f.vector
		v[factCoverage] = p.asked.covered(f.match.mask, f.match.akin)
		v[factLikeness] = p.asked.like(f.match, f.likes)
		v[askedFor] = p.asked.answers(f.hit.Fact)
		if p.asked.own && f.hit.Fact.Subject != "" {
			v[subject] = p.asked.aboutAsker(f.hit.Fact, p.engine.facts.of(f.hit.Fact).terms)
		}
		f.changed = p.changed(f.hit.Fact)
		for _, id := range f.hit.Fact.SourceEpisodeIDs {
			e := p.byID[sourceID{f.hit.Fact.Scope, id}]
			if e != nil && !f.outdates(e) && (e.stated == nil || f.values.score(p.engine.config) > e.stated.values.score(p.engine.config)) {
				e.stated = f
			}
		}
	}
}

// measure sets the features of all candidates: of the episodes first, because a
// fact shares those of its source.
func (p *pool) measure() {
	if p.asked.tense != anyTense {
		p.span = p.spanOf()
	}
	sessions := p.settle()
	texts := p.sessions(sessions, func(c *candidate) float64 { return c.text })
	vectors := p.sessions(sessions, func(c *candidate) float64 { return c.vector })
	for _, c := range p.all {
		if c.doc != nil {
			p.measureEpisode(c, texts[c.session], p.vectorShare*vectors[c.session])
		}
	}
	for _, c := range p.all {
		if c.doc == nil {
			p.measureFact(c)
		}
	}
}

// sides are the features of a turn's neighbours.
var sides = []struct {
	distance int
	feature
}{{-2, secondBefore}, {-1, previousText}, {1, nextText}, {2, secondAfter}}

// justBefore is the index of the side before a turn.
const justBefore = 1

func (p *pool) measureEpisode(c *candidate, text, vector float64) {
	v, d := &c.values, c.doc
	p.measureText(c)
	mask, akin := c.match.mask, c.match.akin
	p.likesNear = append(p.likesNear[:0], c.likes...)
	near := p.likesNear
	alone := c.alone()
	for i, side := range sides {
		if n := c.near[i]; n != nil && !alone {
			v[side.feature] = n.text
			mask |= n.match.mask
			akin |= n.match.akin
			raise(near, n.likes)
		}
	}
	if before := c.near[justBefore]; before != nil && !alone {
		v[previousVector] = before.vector
		if before.doc.asks {
			v[answering] = before.text
		}
	}
	v[coverage], v[sessionText], v[sessionVector] = p.asked.covered(mask, akin), text, vector
	v[nearLikeness] = p.asked.like(match{mask: mask, akin: akin}, near)
	v[speaks] = one(p.asked.named[d.speaker])
	v[othersSpeak] = one(len(p.asked.named) > 0 && !p.asked.named[d.speaker])
	v[isAssistant], v[isQuestion] = one(d.assistant), one(d.asks)
	// A month without a year may be one of any year.
	v[dated] = one(p.query.named.fits(d.session, d.at) || p.asked.month != 0 && d.at.Month() == p.asked.month)
	v[numbered] = one(p.asked.when && d.number)
	v[names] = one(p.asked.naming && d.names)
	p.measureAge(c)
	if p.asked.own {
		v[subject] = one(d.own && !d.relation) - one(d.relation)
	}
	v[other] = one(p.asked.own && d.other != 0 && p.asked.index(d.other) < 0)
	if before := c.near[justBefore]; d.pronoun && before != nil && before.match.mask != 0 {
		v[other] = 0 // it goes on about whom the question and the turn before mention
	}
	v[fits] = one(p.asked.kinds&d.kinds != 0)
	if f := c.stated; f != nil {
		for _, of := range stated {
			v[of] = f.values[of]
		}
		v.beyond(v)
		if p.asked.tense == asksNow && v[askedFor] == 1 {
			v[aged] = 1 // a fact that was not closed is true now
		}
		if f.text > 0 || v[askedFor] > 0 {
			c.lent = []string{f.hit.Fact.ID}
		}
	}
}

// alone reports whether the turns beside one are of the same speaker.
func (c *candidate) alone() bool {
	for _, n := range c.near {
		if n != nil && (n.doc.speaker != c.doc.speaker || n.doc.assistant != c.doc.assistant) {
			return false
		}
	}
	return true
}

func (p *pool) measureText(c *candidate) {
	v := &c.values
	v[ownText], v[ownVector], v[graphed] = c.text, c.vector, c.related
	v[rarity] = c.match.rarest / 8
	v[ownLikeness] = p.asked.like(c.match, c.likes)
	v[ownCoverage] = p.asked.covered(c.match.mask, c.match.akin)
	v[knownWords] = p.asked.known
	v[memorySize] = p.size()
	v[adjacent] = float64(min(c.match.adjacent, 3))
	v[length] = math.Log1p(float64(c.match.terms)) / 4
}

// measureFact sets the features of a fact: its own text in the context of the turn that
// it comes from.
func (p *pool) measureFact(c *candidate) {
	f, own := c.hit.Fact, c.values
	for _, id := range f.SourceEpisodeIDs {
		if e := p.byID[sourceID{f.Scope, id}]; e != nil && !c.outdates(e) && (c.from == nil || e.values.score(p.engine.config) > c.from.values.score(p.engine.config)) {
			c.from = e
		}
	}
	if c.from != nil {
		c.values = c.from.values
		c.values[isQuestion] = 0
		own.beyond(&c.values)
	} else {
		for _, f := range outdone {
			own[f.fact] *= aloneShare
		}
		p.measureAge(c)
	}
	for _, of := range stated {
		c.values[of] = own[of]
	}
	if c.from != nil && own[askedFor] == 1 {
		return // the turn answers in its words as well
	}
	p.measureText(c)
	c.values[coverage] = max(c.values[coverage], c.values[ownCoverage])
	if c.hit.Fact.Subject == asker {
		c.values[other] = 0
	}
	c.values[nearLikeness] = max(c.values[nearLikeness], c.values[ownLikeness])
}

// The numbers of texts between which the share of right answers among hits of a sum was
// measured.
const (
	smallMemory = 40
	largeMemory = 1000
)

// size is the logarithm of the number of texts searched, from 0 to 1.
func (p *pool) size() float64 {
	n := min(max(float64(max(p.episodes.Documents, p.facts.Documents)), smallMemory), largeMemory)
	return math.Log(n/smallMemory) / math.Log(largeMemory/smallMemory)
}

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// sessionKey names a session.
type sessionKey struct {
	scope   scope.Scope
	session string
}

// settle notes the session and the neighbours of each turn, and returns the number of
// sessions.
func (p *pool) settle() int {
	known := map[sessionKey]int{}
	for _, c := range p.all {
		if c.doc == nil {
			continue
		}
		key := sessionKey{c.at.scope, c.doc.session}
		number, found := known[key]
		if !found {
			number = len(known)
			known[key] = number
		}
		c.session = number
	}
	for _, c := range p.all {
		if c.doc == nil {
			continue
		}
		for i, side := range sides {
			if n := p.at[place{c.at.scope, c.at.ordinal + uint64(side.distance)}]; n != nil && n.session == c.session {
				c.near[i] = n
			}
		}
	}
	return len(known)
}

// bestOfSession is how many turns a session is scored by.
const bestOfSession = 3

// sessions scores each of n sessions by its best turns, the best session as 1.
func (p *pool) sessions(n int, of func(*candidate) float64) []float64 {
	top := make([][bestOfSession]float64, n)
	for _, c := range p.all {
		if c.doc == nil {
			continue
		}
		x := of(c)
		for i, y := range top[c.session] {
			if x > y {
				top[c.session][i], x = x, y
			}
		}
	}
	scores, best := make([]float64, n), math.SmallestNonzeroFloat32
	for session, list := range top {
		for _, x := range list {
			scores[session] += x
		}
		best = max(best, scores[session])
	}
	for session := range scores {
		scores[session] /= best
	}
	return scores
}
