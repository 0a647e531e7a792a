package retrieval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"palimpsest/internal/embed"
	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// depth is how many rows beyond the limit a channel is asked for: fusion needs
// rows that one channel ranks low and another high.
const depth = 50

// breadth is how many episodes a channel is asked for at least: the context of one
// may bring it up from far below.
const breadth = 150

// leg is one channel's ranking.
type leg struct {
	name   string
	weight float64
	found
	err error
}

// found is what a channel answers.
type found struct {
	hits   []store.Hit
	counts counts // of a text search
	// lexical tells that the vectors compared say nothing of meaning.
	lexical bool
	// reached are the entities at which the graph channel ended.
	reached []reached
}

// counts are what the texts of each target are weighed by.
type counts struct{ facts, episodes store.TextCounts }

// channel is one way to rank what is known.
type channel struct {
	name   string
	weight float64
	search func(context.Context, Query) (found, error)
}

// The names of the channels.
const (
	textLeg    = "text"
	vectorLeg  = "vector"
	earlierLeg = "earlier"
)

func (e *Engine) channels(q Query) []channel {
	all := []channel{{textLeg, e.config.Text, e.text}, {vectorLeg, e.config.Vector, e.vector}, {graphLeg, e.config.Graph, e.graph}}
	if q.Earlier != nil {
		all = append(all, channel{earlierLeg, cmp.Or(e.config.Text, e.config.Vector), earlier})
	}
	if q.named != nil {
		all = append(all, channel{timeLeg, timeWeight * e.config.Text, e.named})
	}
	return slices.DeleteFunc(all, func(c channel) bool { return c.weight == 0 })
}

// Legs names the channels that have a weight.
func (e *Engine) Legs() []string {
	var names []string
	for _, c := range e.channels(Query{}) {
		names = append(names, c.name)
	}
	return names
}

// Leg asks one channel alone, without fusion.
func (e *Engine) Leg(ctx context.Context, name string, q Query) ([]store.Hit, error) {
	for _, c := range e.channels(q) {
		if c.name == name {
			l := c.run(ctx, q)
			return l.hits, l.err
		}
	}
	return nil, fmt.Errorf("retrieval: no channel %q", name)
}

// ask runs the channels in parallel and returns what has come by the deadline,
// in the order of the channels. One that does not end when told to is left
// behind, and its answer forgotten.
func (e *Engine) ask(ctx context.Context, q Query) []leg {
	ctx, cancel := context.WithTimeout(ctx, e.config.Deadline)
	defer cancel()
	if e.config.Text > 0 && e.store.Spaces().Served.Embedder.Semantic {
		q.speakers = make(chan map[string]bool, 1)
	}
	channels := e.channels(q)
	legs := make([]leg, len(channels))
	answers := make([]chan leg, len(channels))
	for i, c := range channels {
		answers[i] = make(chan leg, 1)
		go func() { answers[i] <- c.run(ctx, q) }()
	}
	for i, c := range channels {
		select {
		case legs[i] = <-answers[i]:
		case <-ctx.Done():
			legs[i] = leg{name: c.name, weight: c.weight, err: ctx.Err()}
			select {
			case legs[i] = <-answers[i]: // it came at the last moment
			default:
			}
		}
	}
	return slices.DeleteFunc(legs, func(l leg) bool { return l.name == graphLeg && l.err == nil && len(l.hits) == 0 })
}

// run asks one channel. One that panics fails alone.
func (c channel) run(ctx context.Context, q Query) (l leg) {
	l = leg{name: c.name, weight: c.weight}
	defer func() {
		if p := recover(); p != nil {
			l.found, l.err = found{}, fmt.Errorf("panicked: %v", p)
		}
	}()
	l.found, l.err = c.search(ctx, q)
	return l
}

func (e *Engine) text(ctx context.Context, q Query) (f found, err error) {
	if q.speakers != nil {
		defer func() { q.speakers <- speakers(f.hits) }()
	}
	text := q.Text
	if e.config.Fusion == FusionScores { // which weighs a synonym below the word itself
		text = withSynonyms(text)
	}
	f.hits, err = each(q, func(sel scope.Selector, t store.SearchQuery) ([]store.Hit, error) {
		t.Counts = &f.counts.episodes
		if t.Target == store.Facts {
			t.Counts = &f.counts.facts
		}
		return e.store.SearchText(ctx, sel, text, t)
	})
	return f, err
}

// speakers are those who say the episodes among hits.
func speakers(hits []store.Hit) map[string]bool {
	names := map[string]bool{}
	for _, h := range hits {
		if h.Episode == nil {
			continue
		}
		if name := speakerOf(h.Episode); name != "" {
			names[name] = true
		}
	}
	return names
}

// namesPatience is how long the vector channel waits for names.
const namesPatience = 100 * time.Millisecond

// unnamed is the text without the names of speakers: turns are embedded without
// them, and a sentence embedding of a name is near to everything about people.
func (q Query) unnamed(ctx context.Context) string {
	if q.speakers == nil {
		return q.Text
	}
	timer := time.NewTimer(namesPatience)
	defer timer.Stop()
	select {
	case names := <-q.speakers:
		return withoutNames(q.Text, names)
	case <-timer.C:
	case <-ctx.Done():
	}
	return q.Text
}

// spaceAttempts is how often a question is embedded while the served space changes.
const spaceAttempts = 3

func (e *Engine) vector(ctx context.Context, q Query) (f found, err error) {
	text := q.unnamed(ctx)
	for range spaceAttempts {
		if f, err = e.vectorIn(ctx, q, text, e.store.Spaces().Served); !errors.Is(err, store.ErrEmbedder) {
			return f, err
		}
	}
	return f, err
}

func (e *Engine) vectorIn(ctx context.Context, q Query, text string, space store.Space) (f found, err error) {
	embedder := e.embedders(space.Embedder)
	if embedder == nil {
		return f, fmt.Errorf("there is no embedder of the space %s", space.Embedder)
	}
	vectors, err := embedder.Embed(ctx, []string{text})
	if err != nil {
		return f, fmt.Errorf("embed: %w", err)
	}
	if len(vectors) != 1 {
		return f, fmt.Errorf("embed: %d vectors for one text", len(vectors))
	}
	f.lexical = !embed.Covers(embedder, text)
	f.hits, err = each(q, func(sel scope.Selector, t store.SearchQuery) ([]store.Hit, error) {
		t.Space = space.ID
		return e.store.SearchVector(ctx, sel, vectors[0], t)
	})
	// Orthogonal rows share nothing with the question: a rank for them is noise.
	f.hits = slices.DeleteFunc(f.hits, func(h store.Hit) bool { return h.Score <= 0 })
	return f, err
}

// each asks for every target and merges the answers into one ranking by score.
// BM25 scores of two tables are comparable only roughly; both tables are of
// short texts of the same language, which is what makes it good enough.
func each(q Query, search func(scope.Selector, store.SearchQuery) ([]store.Hit, error)) ([]store.Hit, error) {
	var all []store.Hit
	for _, target := range []store.Target{store.Facts, store.Episodes} {
		if target == store.Facts && !q.Facts || target == store.Episodes && !q.Episodes {
			continue
		}
		hits, err := search(narrow(q, target))
		if err != nil {
			return nil, err
		}
		all = append(all, hits...)
	}
	slices.SortStableFunc(all, func(a, b store.Hit) int { return cmp.Compare(b.Score, a.Score) })
	return all, nil
}

// narrow restates the question for one target. An episode's session is part of
// its scope; a fact outlives the session it was said in, so that naming one
// asks for what that session contributed to.
func narrow(q Query, target store.Target) (scope.Selector, store.SearchQuery) {
	sel, t := q.Scope, store.SearchQuery{
		Target: target, Limit: min(q.Limit+depth, 1000),
		ValidAt: q.ValidAt, After: q.After, Before: q.Before, Filter: q.Filter,
	}
	if target == store.Facts {
		t.Kinds, t.Session, sel.Session = q.Kinds, sel.Session, nil
	} else {
		t.Limit = max(t.Limit, breadth)
	}
	return sel, t
}
