package embedtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/embed"
)

// Options opts out of what a provider cannot do; the zero value runs all.
type Options struct {
	// Inexact, with the reason, allows vectors of one text to differ by a small
	// distance between calls, as those of a remote model may.
	Inexact string
	// Latin, with the reason, leaves out the texts in other scripts.
	Latin string
}

// RunAll holds the embedder that open returns to the contract. open is called
// for each test and must return embedders of the same space.
func RunAll(t *testing.T, open func(t *testing.T) embed.Embedder, opts Options) {
	t.Helper()
	for name, test := range map[string]func(s suite, t *testing.T){
		"Info":          suite.info,
		"Shape":         suite.shape,
		"Nothing":       suite.nothing,
		"Deterministic": suite.deterministic,
		"Order":         suite.order,
		"Concurrent":    suite.concurrent,
		"Similar":       suite.similar,
		"Cancelled":     suite.cancelled,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(suite{open: open, opts: opts}, t)
		})
	}
}

type suite struct {
	open func(t *testing.T) embed.Embedder
	opts Options
}

func (s suite) equal(a, b []float32) bool {
	if s.opts.Inexact == "" {
		return cmp.Equal(a, b)
	}
	return len(a) == len(b) && cosine(a, b) > 0.999
}

func (s suite) info(t *testing.T) {
	info := s.open(t).Info()
	if info.Name == "" || info.Version == "" || info.Dimensions <= 0 {
		t.Errorf("Info = %+v; want a name, a version and dimensions", info)
	}
	if again := s.open(t).Info(); again != info {
		t.Errorf("Info differs between two of the same: %+v, %+v", info, again)
	}
}

func (s suite) shape(t *testing.T) {
	e := s.open(t)
	for _, text := range append(s.texts(), strings.Repeat("a long text ", 500)) {
		v := one(t, e, text)
		if len(v) != e.Info().Dimensions {
			t.Fatalf("%d dimensions of %d for %.40q", len(v), e.Info().Dimensions, text)
		}
		if n := math.Sqrt(dot(v, v)); math.Abs(n-1) > 1e-4 {
			t.Errorf("length %g, want 1, for %.40q", n, text)
		}
	}
}

func (s suite) nothing(t *testing.T) {
	e := s.open(t)
	if got := embedAll(t, e, nil); len(got) != 0 {
		t.Errorf("no texts gave %d vectors", len(got))
	}
	got := embedAll(t, e, []string{"", "a word", ""})
	zero := make([]float32, e.Info().Dimensions)
	if !cmp.Equal(got[0], zero) || !cmp.Equal(got[2], zero) {
		t.Error("an empty text must give the zero vector")
	}
	if cmp.Equal(got[1], zero) {
		t.Error("empty neighbours took a text's vector away")
	}
}

func (s suite) deterministic(t *testing.T) {
	first, second := s.open(t), s.open(t)
	texts := s.texts()
	a, b, c := embedAll(t, first, texts), embedAll(t, second, texts), embedAll(t, first, texts)
	for i := range texts {
		if !s.equal(a[i], b[i]) || !s.equal(a[i], c[i]) {
			t.Errorf("vectors of %q differ between calls", texts[i])
		}
	}
}

func (s suite) order(t *testing.T) {
	e := s.open(t)
	texts := s.texts()
	together := embedAll(t, e, texts)
	for i, text := range texts {
		if !s.equal(together[i], one(t, e, text)) {
			t.Errorf("%q has another vector alone than in a batch", text)
		}
	}
}

func (s suite) concurrent(t *testing.T) {
	e := s.open(t)
	texts := s.texts()
	want := embedAll(t, e, texts)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			got, err := e.Embed(context.WithoutCancel(t.Context()), texts)
			if err != nil {
				t.Errorf("Embed: %v", err)
				return
			}
			for i := range got {
				if !s.equal(got[i], want[i]) {
					t.Errorf("vector of %q differs when embedded concurrently", texts[i])
				}
			}
		})
	}
	wg.Wait()
}

// similar wants each text nearer to its variant than to every other text.
func (s suite) similar(t *testing.T) {
	e := s.open(t)
	var texts, variants []string
	for _, p := range s.pairs() {
		texts, variants = append(texts, p[0]), append(variants, p[1])
	}
	a, b := embedAll(t, e, texts), embedAll(t, e, variants)
	for i := range texts {
		near := cosine(a[i], b[i])
		for j := range texts {
			if far := cosine(a[i], b[j]); i != j && far >= near {
				t.Errorf("%q is as near to %q (%.3f) as to %q (%.3f)", texts[i], variants[j], far, variants[i], near)
			}
		}
	}
}

func (s suite) cancelled(t *testing.T) {
	e := s.open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Embed(ctx, []string{"a text"}); !errors.Is(err, context.Canceled) {
		t.Errorf("Embed on a cancelled context = %v", err)
	}
}

func (s suite) texts() []string {
	var all []string
	for _, p := range s.pairs() {
		all = append(all, p[0], p[1])
	}
	return all
}

// pairs are texts and variants of them that share words.
func (s suite) pairs() [][2]string {
	pairs := [][2]string{
		{"The museum opens at nine on Sundays", "On Sundays the museums open at nine"},
		{"Anna plays the violin in an orchestra", "The orchestra has Anna on the violin"},
		{"The server ran out of disk space", "Out of disk space: the servers stopped"},
		{"Peanut allergies must be declared", "She declared a peanut allergy"},
	}
	if s.opts.Latin != "" {
		return pairs
	}
	return append(pairs,
		[2]string{"Кошка спит на тёплом подоконнике", "На подоконнике спала кошка"},
		[2]string{"我在北京的大学学习历史", "他在北京学习历史"},
		[2]string{"東京タワーに登りたい", "東京タワーは高い"},
		[2]string{"Crème brûlée aux pêches", "CRÈME BRÛLÉE aux pêches"},
	)
}

func one(t *testing.T, e embed.Embedder, text string) []float32 {
	t.Helper()
	return embedAll(t, e, []string{text})[0]
}

func embedAll(t *testing.T, e embed.Embedder, texts []string) [][]float32 {
	t.Helper()
	vectors, err := e.Embed(t.Context(), texts)
	if err == nil && len(vectors) != len(texts) {
		err = fmt.Errorf("%d vectors for %d texts", len(vectors), len(texts))
	}
	if err != nil {
		t.Fatalf("Embed: %v", err)
	}
	return vectors
}

func cosine(a, b []float32) float64 {
	if n := math.Sqrt(dot(a, a) * dot(b, b)); n > 0 {
		return dot(a, b) / n
	}
	return 0
}

func dot(a, b []float32) float64 {
	var sum float64
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}
