package retrieval

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// candidate is a row that may be an answer, or context of one.
type candidate struct {
	fused
	at     place
	doc    *document // nil for a fact
	match  match
	likes  []float32
	text   float64 // of the best of the pool
	vector float64
	// related is how far the graph relates it to the question.
	related float64
	values  values
	from    *candidate    // the episode of a fact
	changed *candidate    // the last episode of a fact that was changed
	stated  *candidate    // of an episode's facts the one that answers best
	near    [4]*candidate // of an episode, the turns of its session at the distances of sides
	session int           // of an episode
	lent    []string      // facts whose match counts for the episode
}

// pool is what the legs found, with the turns around the best of it.
type pool struct {
	engine *Engine
	query  Query
	legs   []leg
	asked  *question
	all    []*candidate
	known  map[string]*candidate // by key
	at     map[place]*candidate
	byID   map[sourceID]*candidate

	facts, episodes store.TextCounts
	best            float64 // BM25 of an episode
	span            span
	likesNear       []float32 // room for the likenesses of a turn and its neighbours
	bestFact        float64
	vectorShare     float64 // what similarities count
}

// sourceID names an episode as facts do.
type sourceID struct {
	scope scope.Scope
	id    string
}

func (e *Engine) pool(q Query, legs []leg) *pool {
	found := 0
	for _, l := range legs {
		found += len(l.hits)
	}
	p := &pool{
		engine: e, query: q, legs: legs, all: make([]*candidate, 0, found+widened), known: make(map[string]*candidate, found),
		at: make(map[place]*candidate, found+widened), byID: make(map[sourceID]*candidate, found+widened),
	}
	speakers := map[string]bool{}
	for l, leg := range legs {
		if leg.err != nil {
			continue
		}
		for i, h := range leg.hits {
			p.add(h).places[l] = Place{Rank: i + 1, Score: h.Score}
		}
		if leg.counts.facts.Documents+leg.counts.episodes.Documents > 0 {
			p.facts, p.episodes = leg.counts.facts, leg.counts.episodes
		}
	}
	for _, c := range p.all {
		if c.doc != nil && c.doc.speaker != "" {
			speakers[c.doc.speaker] = true
		}
	}
	p.asked = ask(q.Text, together(p.episodes, p.facts), speakers, p.askerNames())
	p.asked.compareBy(e.documents.table, questionWords(q.Text), 1-p.size())
	p.nameRelations()
	p.reach()
	p.matchFrom(0)
	return p
}

// together are the counts of episodes, with those of facts for terms that no episode
// holds, so that facts beside episodes do not change what a term weighs.
func together(episodes, facts store.TextCounts) store.TextCounts {
	if episodes.Documents == 0 {
		return facts
	}
	sum := store.TextCounts{Documents: episodes.Documents, Terms: episodes.Terms, Holding: map[string]uint64{}}
	maps.Copy(sum.Holding, facts.Holding)
	for term, n := range episodes.Holding {
		if n > 0 {
			sum.Holding[term] = n
		}
	}
	return sum
}

func (p *pool) add(h store.Hit) *candidate {
	key := keyOf(h)
	c := p.known[key]
	if c == nil {
		c = &candidate{fused: fused{hit: h, key: key, places: make([]Place, len(p.legs))}}
		p.known[key] = c
		p.all = append(p.all, c)
		if h.Episode != nil {
			p.stand(c, placeOf(h.Episode), p.engine.documents.of(h.Episode))
		}
	}
	return c
}

// stand notes where an episode stands.
func (p *pool) stand(c *candidate, at place, d *document) {
	c.at, c.doc = at, d
	p.at[at] = c
	p.byID[sourceID{at.scope, d.id}] = c
}

// matchFrom compares the candidates from an index on with the question.
func (p *pool) matchFrom(first int) {
	for _, c := range p.all[first:] {
		if c.doc != nil {
			c.match, c.related = p.asked.match(c.doc.terms, average(p.episodes)), p.related(c, c.doc.terms)
			c.likes = p.asked.meanings.compare(c.doc.words)
		} else {
			own := p.engine.facts.of(c.hit.Fact)
			c.match, c.related = p.asked.match(own.terms, average(p.facts)), p.related(c, own.terms)
			c.likes = p.asked.meanings.compare(own.words)
		}
	}
	for _, c := range p.all {
		if f := c.hit.Fact; f != nil && p.asked.answers(f) > 0 {
			p.asked.fulfil(&c.match, f)
			for _, id := range f.SourceEpisodeIDs {
				if e := p.byID[sourceID{f.Scope, id}]; e != nil {
					p.asked.fulfil(&e.match, f)
				}
			}
		}
	}
	for _, c := range p.all {
		if c.doc != nil {
			p.best = max(p.best, c.match.bm25)
		} else {
			p.bestFact = max(p.bestFact, c.match.bm25)
		}
	}
	p.asked.weigh(p.episodes.Documents+p.facts.Documents > 0)
	for l, leg := range p.legs {
		if leg.name == vectorLeg && leg.err == nil {
			p.compareVectors(l)
		}
	}
	for _, c := range p.all {
		if best := p.best; c.doc != nil {
			c.text = c.match.bm25 / max(best, math.SmallestNonzeroFloat32)
		} else {
			c.text = c.match.bm25 / max(best, p.bestFact, math.SmallestNonzeroFloat32)
		}
	}
}

// chance is a similarity that vectors of unlike texts have, and more: the best of an
// answer counts in full only beyond it.
const chance = 0.2

// lexicalShare is what similarities count that tell common words alone, which the text
// channel knows better.
const lexicalShare = 0.15

// compareVectors divides similarities by the best one of an episode, those of facts
// by the best one of all: facts beside episodes do not change the scores of these.
func (p *pool) compareVectors(leg int) {
	best, bestFact := chance, 0.0
	for _, c := range p.all {
		if score := c.places[leg].Score; c.doc != nil {
			best = max(best, score)
		} else {
			bestFact = max(bestFact, score)
		}
	}
	share := 1.0
	if p.legs[leg].lexical {
		share = lexicalShare
	}
	p.vectorShare = share
	for _, c := range p.all {
		if c.vector = share * c.places[leg].Score / best; c.doc == nil {
			c.vector = share * c.places[leg].Score / max(best, bestFact)
		}
	}
}

func average(c store.TextCounts) float64 { return float64(c.Terms) / max(1, float64(c.Documents)) }

const (
	// widened is how many of the best episodes bring their neighbours.
	widened = 50
	// reach is how far a neighbour is away at most.
	reach = 2
)

// widen adds the turns around the best episodes, found by their ordinals.
func (p *pool) widen(ctx context.Context) error {
	var best []*candidate
	for _, c := range p.all {
		if c.doc != nil {
			best = append(best, c)
		}
	}
	first := func(c *candidate) float64 { return weights[ownText]*c.text + weights[ownVector]*c.vector }
	slices.SortStableFunc(best, func(a, b *candidate) int { return cmp.Compare(first(b), first(a)) })
	missing := map[scope.Scope][]uint64{}
	asked, from := map[place]bool{}, len(p.all)
	for _, c := range best[:min(len(best), widened)] {
		for d := -reach; d <= reach; d++ {
			at := place{c.at.scope, c.at.ordinal + uint64(d)}
			if p.at[at] != nil || asked[at] || at.ordinal-1 >= math.MaxInt64 {
				continue
			}
			asked[at] = true
			if d := p.engine.documents.get(at); d != nil {
				p.near(at, d)
			} else {
				missing[at.scope] = append(missing[at.scope], at.ordinal)
			}
		}
	}
	err := p.readAt(ctx, missing, func(e *memory.Episode) { p.near(placeOf(e), p.engine.documents.of(e)) })
	p.matchFrom(from)
	return err
}

func (p *pool) readAt(ctx context.Context, ordinals map[scope.Scope][]uint64, found func(*memory.Episode)) error {
	for owner, list := range ordinals {
		episodes, err := p.engine.store.EpisodesAt(ctx, owner, list)
		if err != nil {
			return err
		}
		for i := range episodes {
			found(&episodes[i])
		}
	}
	return nil
}

// near adds a neighbour that no leg found.
func (p *pool) near(at place, d *document) {
	c := &candidate{fused: fused{places: make([]Place, len(p.legs))}}
	p.all = append(p.all, c)
	p.stand(c, at, d)
}
