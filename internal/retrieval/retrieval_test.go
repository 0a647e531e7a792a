package retrieval

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"palimpsest/internal/embed"
	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/internal/testengine/redisdouble"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(redisdouble.Tests{M: m}) }

var errDown = errors.New("down")

// fake answers each channel by a function.
type fake struct {
	store.Timeline
	noGraph
	text, vector func(context.Context, scope.Selector, store.SearchQuery) ([]store.Hit, error)
	embed        func(context.Context) ([][]float32, error)
	at           func([]uint64) ([]memory.Episode, error)
	// embedded, if not nil, receives each text that a semantic embedder embeds.
	embedded chan string
}

// noGraph has no entity.
type noGraph struct{ Graph }

func (noGraph) Scopes(context.Context, scope.Selector, func(scope.Scope) bool) error { return nil }

func (f fake) EpisodesAt(_ context.Context, _ scope.Scope, ordinals []uint64) ([]memory.Episode, error) {
	if f.at == nil {
		return nil, nil
	}
	return f.at(ordinals)
}

func (f fake) SearchText(ctx context.Context, sel scope.Selector, _ string, q store.SearchQuery) ([]store.Hit, error) {
	return f.text(ctx, sel, q)
}

func (f fake) SearchVector(ctx context.Context, sel scope.Selector, _ []float32, q store.SearchQuery) ([]store.Hit, error) {
	return f.vector(ctx, sel, q)
}

func (f fake) Spaces() store.Spaces {
	return store.Spaces{Served: store.Space{ID: 1, Embedder: f.Info()}}
}

func (f fake) Info() embed.Info { return embed.Info{Semantic: f.embedded != nil} }

func (f fake) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if f.embedded != nil {
		f.embedded <- texts[0]
	}
	if f.embed == nil {
		return [][]float32{{1}}, nil
	}
	return f.embed(ctx)
}

// of answers a search of each target with its hits.
func of(hits ...store.Hit) func(context.Context, scope.Selector, store.SearchQuery) ([]store.Hit, error) {
	return func(_ context.Context, _ scope.Selector, q store.SearchQuery) ([]store.Hit, error) {
		var out []store.Hit
		for _, h := range hits {
			if (h.Fact != nil) == (q.Target == store.Facts) {
				out = append(out, h)
			}
		}
		return out, nil
	}
}

func failing(context.Context, scope.Selector, store.SearchQuery) ([]store.Hit, error) {
	return nil, errDown
}

func factHit(id string, score float64) store.Hit {
	return store.Hit{Score: score, Fact: &store.Fact{Fact: events.Fact{ID: id}}}
}

func episodeHit(id string, score float64) store.Hit {
	return store.Hit{Score: score, Episode: &memory.Episode{ID: id}}
}

// engine fuses by rank, for which hits need no text.
func engine(t *testing.T, f fake, change func(*Config)) *Engine {
	t.Helper()
	c := DefaultConfig()
	c.Fusion, c.Vector = FusionRRF, 0.5
	if change != nil {
		change(&c)
	}
	e, err := New(c, f, embed.Only(f))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func everything(text string) Query { return Query{Text: text, Facts: true, Episodes: true} }

func ids(r Results) []string {
	var out []string
	for _, h := range r.Hits {
		if h.Fact != nil {
			out = append(out, h.Fact.ID)
		} else {
			out = append(out, h.Episode.ID)
		}
	}
	return out
}

func TestSearchFuses(t *testing.T) {
	t.Parallel()
	e := engine(t, fake{
		text:   of(factHit("a", 3), episodeHit("b", 2), factHit("c", 1)),
		vector: of(factHit("c", 0.9), episodeHit("d", 0.5), factHit("opposite", -0.1), factHit("orthogonal", 0)),
	}, nil)
	got, err := e.Search(t.Context(), everything("x"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"c", "a", "b", "d"}, ids(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want := map[string]Place{"text": {Rank: 3, Score: 1}, "vector": {Rank: 1, Score: 0.9}}
	if diff := cmp.Diff(want, got.Hits[0].Channels); diff != "" {
		t.Errorf("channels (-want +got):\n%s", diff)
	}
	const k = 60.0
	if want := (1/(k+3) + 0.5/(k+1)) / (1/(k+1) + 0.5/(k+1)); math.Abs(got.Hits[0].Score-want) > 1e-12 {
		t.Errorf("score %v, want %v", got.Hits[0].Score, want)
	}
}

func TestSearchTargets(t *testing.T) {
	t.Parallel()
	e := engine(t, fake{text: of(factHit("f", 1), episodeHit("e", 2)), vector: of()}, nil)
	for want, q := range map[string]Query{"f": {Facts: true}, "e": {Episodes: true}} {
		if got, err := e.Search(t.Context(), q); err != nil || !cmp.Equal(ids(got), []string{want}) {
			t.Errorf("%v, %v; want %s", ids(got), err, want)
		}
	}
}

func TestSearchLimit(t *testing.T) {
	t.Parallel()
	var hits []store.Hit
	for i := range 40 {
		hits = append(hits, factHit(fmt.Sprintf("%02d", i), float64(40-i)))
	}
	e := engine(t, fake{text: of(hits...), vector: of()}, nil)
	for _, tc := range []struct {
		text        string
		limit, want int
		complexity  Complexity
	}{
		{"x", 0, 5, Simple}, {"why x", 0, 20, Complex}, {"x", 7, 7, Simple}, {"x", 1000, 40, Simple}, {"x", -3, 5, Simple},
	} {
		q := everything(tc.text)
		q.Limit = tc.limit
		got, err := e.Search(t.Context(), q)
		if err != nil || len(got.Hits) != tc.want || got.Complexity != tc.complexity || got.Hits[0].Fact.ID != "00" {
			t.Errorf("%+v: %d hits, %s, %v", tc, len(got.Hits), got.Complexity, err)
		}
	}
}

func TestSearchDegrades(t *testing.T) {
	t.Parallel()
	stuck := func(ctx context.Context, _ scope.Selector, _ store.SearchQuery) ([]store.Hit, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	good := of(factHit("f", 1))
	for _, tc := range []struct {
		name     string
		with     fake
		degraded []string
	}{
		{"text fails", fake{text: failing, vector: good}, []string{"text"}},
		{"vector fails", fake{text: good, vector: failing}, []string{"vector"}},
		{"text is late", fake{text: stuck, vector: good}, []string{"text"}},
		{"text panics", fake{vector: good}, []string{"text"}},
		{"embedder fails", fake{text: good, vector: good, embed: func(context.Context) ([][]float32, error) { return nil, errDown }}, []string{"vector"}},
		{"embedder has nothing", fake{text: good, vector: good, embed: func(context.Context) ([][]float32, error) { return nil, nil }}, []string{"vector"}},
		{"none", fake{text: good, vector: good}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			e := engine(t, tc.with, func(c *Config) { c.Deadline = 200 * time.Millisecond })
			got, err := e.Search(t.Context(), everything("x"))
			if err != nil || !cmp.Equal(ids(got), []string{"f"}) || got.Hits[0].Score != 1 {
				t.Fatalf("%+v, %v", got, err)
			}
			if diff := cmp.Diff(tc.degraded, got.Degraded); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSearchDoesNotWaitForWhoIgnoresTheDeadline(t *testing.T) {
	t.Parallel()
	free := make(chan struct{})
	defer close(free)
	deaf := func(context.Context, scope.Selector, store.SearchQuery) ([]store.Hit, error) { <-free; return nil, nil }
	e := engine(t, fake{text: of(factHit("f", 1)), vector: deaf}, func(c *Config) { c.Deadline = 500 * time.Millisecond })
	got, err := e.Search(t.Context(), everything("x"))
	if err != nil || !cmp.Equal(ids(got), []string{"f"}) || !cmp.Equal(got.Degraded, []string{"vector"}) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestSearchUnavailable(t *testing.T) {
	t.Parallel()
	e := engine(t, fake{text: failing, vector: failing}, nil)
	got, err := e.Search(t.Context(), everything("x"))
	if !errors.Is(err, ErrUnavailable) || !errors.Is(err, errDown) || !cmp.Equal(got.Degraded, []string{"text", "vector"}) {
		t.Errorf("%+v, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := engine(t, fake{text: of(), vector: of(), embed: func(ctx context.Context) ([][]float32, error) { return nil, ctx.Err() }}, nil).
		Search(ctx, everything("x")); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestWeightsGateChannels(t *testing.T) {
	t.Parallel()
	e := engine(t, fake{text: of(factHit("f", 1)), vector: failing}, func(c *Config) { c.Vector = 0 })
	got, err := e.Search(t.Context(), everything("x"))
	if err != nil || got.Degraded != nil || got.Hits[0].Score != 1 {
		t.Errorf("a channel without weight is asked: %+v, %v", got, err)
	}
	ranked := func(text, vector float64) []string {
		e := engine(t, fake{text: of(factHit("t", 1), factHit("v", 0.5)), vector: of(factHit("v", 1), factHit("t", 0.5))},
			func(c *Config) { c.Text, c.Vector = text, vector })
		got, err := e.Search(t.Context(), everything("x"))
		if err != nil {
			t.Fatal(err)
		}
		return ids(got)
	}
	if got := ranked(2, 1); got[0] != "t" {
		t.Errorf("text weighs more: %v", got)
	}
	if got := ranked(1, 2); got[0] != "v" {
		t.Errorf("vector weighs more: %v", got)
	}
}

// A session narrows episodes by their scope, and facts by what contributed to
// them.
func TestSearchNarrowsSessions(t *testing.T) {
	t.Parallel()
	session := "s1"
	look := func(_ context.Context, sel scope.Selector, q store.SearchQuery) ([]store.Hit, error) {
		switch {
		case q.Target == store.Facts && (sel.Session != nil || q.Session == nil || *q.Session != session || q.Kinds == nil),
			q.Target == store.Episodes && (sel.Session == nil || *sel.Session != session || q.Session != nil || q.Kinds != nil):
			t.Errorf("%v %+v", sel, q)
		case q.Target == store.Facts && q.Limit != 60, q.Target == store.Episodes && q.Limit != breadth:
			t.Errorf("limit %d", q.Limit)
		}
		return nil, nil
	}
	q := everything("x")
	q.Scope, q.Kinds, q.Limit = scope.Selector{Project: "p", Session: &session}, []events.FactKind{events.FactOpinion}, 10
	if _, err := engine(t, fake{text: look, vector: look}, nil).Search(t.Context(), q); err != nil {
		t.Error(err)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Config){
		"fusion": func(c *Config) { c.Fusion = "magic" }, "k": func(c *Config) { c.K = 0 }, "negative": func(c *Config) { c.Text = -1 },
		"no weight": func(c *Config) { c.Text, c.Vector = 0, 0 }, "deadline": func(c *Config) { c.Deadline = 0 },
	} {
		c := DefaultConfig()
		change(&c)
		if _, err := New(c, fake{}, embed.Only(fake{})); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestComplexity(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Complexity{
		"": Simple, "where does Nora live": Simple, "Why did she move?": Complex, "когда она переехала": Complex,
		"who? what?": Complex, "whenever": Simple, "Зачем": Complex,
		"alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi": Complex,
	} {
		if got := ComplexityOf(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
