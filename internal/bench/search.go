package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"palimpsest/internal/retrieval"
	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

const (
	searchTarget = 1.5
	searchLimit  = 20
)

// measureSearch compares the engine of /v1/search (query embedded, both
// channels, fusion, rows read) with the bare sum. Queries are a fixed mixture;
// every round asks all of them, ours and bare in turn. The figures of one
// channel compare it with its own half of the sum.
func measureSearch(ctx context.Context, b *bench) ([]Figure, error) {
	var figures []Figure
	for _, n := range b.Facts {
		more, err := b.searchAmong(ctx, n)
		if err != nil {
			return nil, fmt.Errorf("%d facts: %w", n, err)
		}
		figures = append(figures, more...)
	}
	return figures, nil
}

func (b *bench) searchAmong(ctx context.Context, n int) (_ []Figure, err error) {
	dir, err := b.fresh("search")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := b.OpenStore(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	bare, err := openBareSearch(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bare.close()) }()
	if err := b.fill(ctx, s, bare, n); err != nil {
		return nil, fmt.Errorf("fill: %w", err)
	}
	c, err := b.newContest(ctx, s, bare)
	if err != nil {
		return nil, err
	}
	if _, err := c.round(ctx, 1); err != nil { // loads what stays in memory
		return nil, err
	}
	var rounds []timings
	for began := time.Now(); len(rounds) < b.Rounds && (len(rounds) == 0 || time.Since(began) < budget); {
		t, err := c.round(ctx, b.repeats)
		if err != nil {
			return nil, err
		}
		rounds = append(rounds, t)
	}
	return searchFigures(fmt.Sprintf("search.%d", n), rounds), nil
}

// timings is how long every question of a round took, in milliseconds.
type timings struct{ whole, text, vector, bareText, bareScan, bareSum []float64 }

func searchFigures(name string, rounds []timings) []Figure {
	over := func(suffix string, p, target float64, ours, limit func(timings) []float64) Figure {
		var both pair
		for _, t := range rounds {
			both.ours = append(both.ours, percentile(slices.Sorted(slices.Values(ours(t))), p))
			both.limit = append(both.limit, percentile(slices.Sorted(slices.Values(limit(t))), p))
		}
		return both.over(name+suffix, unitMillis, Lower, target)
	}
	whole, sum := func(t timings) []float64 { return t.whole }, func(t timings) []float64 { return t.bareSum }
	text, bareText := func(t timings) []float64 { return t.text }, func(t timings) []float64 { return t.bareText }
	vector, scan := func(t timings) []float64 { return t.vector }, func(t timings) []float64 { return t.bareScan }
	return []Figure{
		over(".p50", 50, searchTarget, whole, sum),
		over(".p99", 99, 0, whole, sum),
		over(".text.p50", 50, 0, text, bareText),
		over(".text.p99", 99, 0, text, bareText),
		over(".vector.p50", 50, 0, vector, scan),
	}
}

// contest asks the same questions of both sides.
type contest struct {
	engine    *retrieval.Engine
	store     store.Searcher
	bare      *bareSearch
	at        time.Time
	questions []string
	vectors   [][]float32
}

func (b *bench) newContest(ctx context.Context, s store.Searcher, bare *bareSearch) (*contest, error) {
	engine, err := retrieval.New(retrieval.DefaultConfig(), s, b.Embedder)
	if err != nil {
		return nil, err
	}
	asked := questions()
	vectors, err := b.Embedder.Embed(ctx, asked)
	if err != nil {
		return nil, fmt.Errorf("embed questions: %w", err)
	}
	return &contest{engine, s, bare, time.Now(), asked, vectors}, nil
}

// round asks every question some times over, each of all sides before the next.
func (c *contest) round(ctx context.Context, times int) (t timings, err error) {
	for range times {
		for i, q := range c.questions {
			if err := c.ask(ctx, &t, q, c.vectors[i]); err != nil {
				return t, fmt.Errorf("ask %q: %w", q, err)
			}
		}
	}
	return t, nil
}

func (c *contest) ask(ctx context.Context, t *timings, question string, vector []float32) error {
	sel := scope.Under(searched)
	narrow := store.SearchQuery{Target: store.Facts, Limit: searchLimit, ValidAt: c.at}
	for _, side := range []struct {
		took *[]float64
		ask  func() error
	}{
		{&t.whole, func() error {
			r, err := c.engine.Search(ctx, retrieval.Query{Scope: sel, Text: question, Limit: searchLimit, Facts: true, ValidAt: c.at})
			if err == nil && (len(r.Hits) == 0 || len(r.Degraded) > 0) {
				err = fmt.Errorf("%d hits, degraded: %v", len(r.Hits), r.Degraded)
			}
			return err
		}},
		{&t.bareText, func() error { _, err := c.bare.query(ctx, question); return err }},
		{&t.bareScan, func() error { c.bare.scan(vector); return nil }},
		{&t.text, func() error { _, err := c.store.SearchText(ctx, sel, question, narrow); return err }},
		{&t.vector, func() error { _, err := c.store.SearchVector(ctx, sel, vector, narrow); return err }},
	} {
		began := time.Now()
		if err := side.ask(); err != nil {
			return err
		}
		*side.took = append(*side.took, float64(time.Since(began).Nanoseconds())/1e6)
	}
	last := len(t.bareText) - 1
	t.bareSum = append(t.bareSum, t.bareText[last]+t.bareScan[last])
	return nil
}

// questions is the fixed mixture: eight rare words, six pairs of common ones, six
// of several words, four sentences with a name.
func questions() []string {
	all := rareWords(8)
	s := newSpeech(11)
	for i := range 6 {
		all = append(all, word(i)+" "+word(2*i+1))
	}
	for i := range 6 {
		all = append(all, s.words(4+i%3))
	}
	for i := range 4 {
		all = append(all, "Which "+word(40+i)+" does "+name(37*i)+" "+strings.TrimSuffix(verbs[i], "s")+"?")
	}
	return all
}

// rareWords are the rarest that the first facts hold, and so every size of
// scope: in a large one they are not alone.
func rareWords(n int) []string {
	s := newSpeech(factsSeed)
	ranks := make([]int, effectFacts*factWords)
	for i := range ranks {
		ranks[i] = int(s.zipf.Uint64())
	}
	slices.Sort(ranks)
	ranks = slices.Compact(ranks)
	words := make([]string, n)
	for i := range words {
		words[i] = word(ranks[len(ranks)-1-i*len(ranks)/(2*n)])
	}
	return words
}
