package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"palimpsest/internal/bench/bare"
	"palimpsest/internal/embed"
	"palimpsest/internal/retrieval"
	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

const (
	searchTarget = 1.5
	searchLimit  = 20
)

// measureSearch compares the engine of /v1/search (query embedded, both
// channels, fusion, rows read) with the bare sum. Questions are a fixed mixture,
// and each side gets each question once: the store's cache of common words counts,
// but a cached answer would not be a search. The figures of one channel compare it,
// over other questions of the mixture, with its half of the sum.
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
	other, err := bare.OpenSearch(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, other.Close()) }()
	if err := b.fill(ctx, s, other, n); err != nil {
		return nil, fmt.Errorf("fill: %w", err)
	}
	c, err := b.newContest(s, other)
	if err != nil {
		return nil, err
	}
	if _, err := c.round(ctx, 0, 1); err != nil { // fills the caches
		return nil, err
	}
	var rounds []timings
	for began := time.Now(); len(rounds) < b.Rounds && (len(rounds) == 0 || time.Since(began) < budget); {
		t, err := c.round(ctx, len(rounds)+1, b.repeats)
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

// contest runs the questions on both sides.
type contest struct {
	engine   *retrieval.Engine
	store    retrieval.Store
	embedder embed.Embedder
	bare     *bare.Search
	at       time.Time
}

func (b *bench) newContest(s retrieval.Store, other *bare.Search) (*contest, error) {
	engine, err := retrieval.New(retrieval.DefaultConfig(), s, embed.Only(b.Embedder))
	if err != nil {
		return nil, err
	}
	return &contest{engine, s, b.Embedder, other, time.Now()}, nil
}

// round asks so many mixtures of questions, of both sides by turns, and as many
// others of each channel.
func (c *contest) round(ctx context.Context, number, mixtures int) (t timings, err error) {
	asked := questions(uint64(number), 2*mixtures)
	vectors, err := c.embedder.Embed(ctx, asked)
	if err != nil {
		return t, fmt.Errorf("embed questions: %w", err)
	}
	for i, half := 0, len(asked)/2; i < half; i++ {
		if err := c.compete(ctx, &t, asked[i], vectors[i]); err != nil {
			return t, fmt.Errorf("ask %q: %w", asked[i], err)
		}
		if err := c.channels(ctx, &t, asked[half+i], vectors[half+i]); err != nil {
			return t, fmt.Errorf("ask %q: %w", asked[half+i], err)
		}
	}
	return t, nil
}

func (c *contest) compete(ctx context.Context, t *timings, question string, vector []float32) error {
	err := timed(&t.whole, func() error {
		r, err := c.engine.Search(ctx, retrieval.Query{
			Scope: scope.Under(searched), Text: question, Limit: searchLimit, Facts: true, ValidAt: c.at,
		})
		if err == nil && (len(r.Hits) == 0 || len(r.Degraded) > 0) {
			err = fmt.Errorf("%d hits, degraded: %v", len(r.Hits), r.Degraded)
		}
		return err
	})
	if err == nil {
		err = timed(&t.bareText, func() error { _, err := c.bare.Match(ctx, question, searchLimit); return err })
	}
	if err == nil {
		err = timed(&t.bareScan, func() error { c.bare.Nearest(vector, searchLimit); return nil })
	}
	if err == nil {
		last := len(t.bareText) - 1
		t.bareSum = append(t.bareSum, t.bareText[last]+t.bareScan[last])
	}
	return err
}

func (c *contest) channels(ctx context.Context, t *timings, question string, vector []float32) error {
	narrow := store.SearchQuery{Target: store.Facts, Limit: searchLimit, ValidAt: c.at}
	err := timed(&t.text, func() error {
		_, err := c.store.SearchText(ctx, scope.Under(searched), question, narrow)
		return err
	})
	if err == nil {
		err = timed(&t.vector, func() error {
			_, err := c.store.SearchVector(ctx, scope.Under(searched), vector, narrow)
			return err
		})
	}
	return err
}

// timed appends how long f takes, in milliseconds.
func timed(took *[]float64, f func() error) error {
	began := time.Now()
	err := f()
	*took = append(*took, float64(time.Since(began).Nanoseconds())/1e6)
	return err
}

// questions is n mixtures: of each, eight rare words, six pairs of common ones,
// six questions of several words, four sentences with a name. A seed gives the
// same in every run.
func questions(seed uint64, n int) []string {
	rare, s := rareWords(), newSpeech(1_000+seed)
	var all []string
	for range n {
		for range 8 {
			all = append(all, rare[s.IntN(len(rare))])
		}
		for range 6 {
			all = append(all, word(s.IntN(12))+" "+word(s.IntN(12)))
		}
		for i := range 6 {
			all = append(all, s.words(4+i%3))
		}
		for range 4 {
			all = append(all, "Which "+word(40+s.IntN(400))+" does "+name(s.IntN(300))+" "+strings.TrimSuffix(verbs[s.IntN(len(verbs))], "s")+"?")
		}
	}
	return all
}

// rareWords are the rarer half of those that the first facts hold, and so every
// size of scope: in a large one they are not alone.
func rareWords() []string {
	s := newSpeech(factsSeed)
	ranks := make([]int, effectFacts*factWords)
	for i := range ranks {
		ranks[i] = int(s.zipf.Uint64())
	}
	slices.Sort(ranks)
	ranks = slices.Compact(ranks)
	var words []string
	for _, rank := range ranks[len(ranks)/2:] {
		words = append(words, word(rank))
	}
	return words
}
