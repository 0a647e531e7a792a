package retrieval

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// depth is how many rows beyond the limit a channel is asked for: fusion needs
// rows that one channel ranks low and another high.
const depth = 50

// leg is one channel's ranking.
type leg struct {
	name   string
	weight float64
	hits   []store.Hit
	err    error
}

// channel is one way to rank what is known.
type channel struct {
	name   string
	weight float64
	search func(context.Context, Query) ([]store.Hit, error)
}

func (e *Engine) channels(q Query) []channel {
	all := []channel{{"text", e.config.Text, e.text}, {"vector", e.config.Vector, e.vector}}
	if q.Earlier != nil {
		all = append(all, channel{"earlier", cmp.Or(e.config.Text, e.config.Vector), earlier})
	}
	if q.named != nil {
		all = append(all, channel{timeLeg, timeWeight * e.config.Text, e.named})
	}
	return slices.DeleteFunc(all, func(c channel) bool { return c.weight == 0 })
}

// ask runs the channels in parallel and returns what has come by the deadline,
// in the order of the channels. One that does not end when told to is left
// behind, and its answer forgotten.
func (e *Engine) ask(ctx context.Context, q Query) []leg {
	ctx, cancel := context.WithTimeout(ctx, e.config.Deadline)
	defer cancel()
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
	return legs
}

// run asks one channel. One that panics fails alone.
func (c channel) run(ctx context.Context, q Query) (l leg) {
	l = leg{name: c.name, weight: c.weight}
	defer func() {
		if p := recover(); p != nil {
			l.hits, l.err = nil, fmt.Errorf("panicked: %v", p)
		}
	}()
	l.hits, l.err = c.search(ctx, q)
	return l
}

func (e *Engine) text(ctx context.Context, q Query) ([]store.Hit, error) {
	return each(q, func(sel scope.Selector, t store.SearchQuery) ([]store.Hit, error) {
		return e.store.SearchText(ctx, sel, q.Text, t)
	})
}

func (e *Engine) vector(ctx context.Context, q Query) ([]store.Hit, error) {
	vectors, err := e.embedder.Embed(ctx, []string{q.Text})
	if err != nil {
		return nil, fmt.Errorf("embed: %w", err)
	}
	if len(vectors) != 1 {
		return nil, fmt.Errorf("embed: %d vectors for one text", len(vectors))
	}
	hits, err := each(q, func(sel scope.Selector, t store.SearchQuery) ([]store.Hit, error) {
		return e.store.SearchVector(ctx, sel, vectors[0], t)
	})
	// Orthogonal rows share nothing with the question: a rank for them is noise.
	return slices.DeleteFunc(hits, func(h store.Hit) bool { return h.Score <= 0 }), err
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
		ValidAt: q.ValidAt, After: q.After, Before: q.Before,
	}
	if target == store.Facts {
		t.Kinds, t.Session, sel.Session = q.Kinds, sel.Session, nil
	}
	return sel, t
}
