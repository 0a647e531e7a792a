package storetest

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"palimpsest/internal/lex"
	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func findText(t *testing.T, st store.Store, sel scope.Selector, text string, target store.Target) []string {
	t.Helper()
	return hitIDs(must(st.SearchText(t.Context(), sel, text, store.SearchQuery{Target: target, Limit: 1000}))(t))
}

func testSearchText(t *testing.T, s suite) {
	ana := user("ana", "")
	texts := map[string]string{
		"stem":     "Ana was running and kept running marathons",
		"accent":   "Zoë lives in São Paulo",
		"chinese":  "安娜喜欢喝绿茶",
		"japanese": "アナは東京に住んでいます",
		"russian":  "Анна любит зелёный чай",
		"emoji":    "party 🎉 tonight",
		"syntax":   `she said "AND OR NOT NEAR" (weird) col:value -minus star*`,
		"number":   "order 4711 arrived",
		"short":    "tea",
		"long":     "tea and then a very long story about something else entirely which never ends at all and goes on",
	}
	words := []struct {
		query string
		want  []string
	}{
		{"run", []string{"stem"}},
		{"marathon", []string{"stem"}},
		{"paulo", []string{"accent"}},
		{"ZOË", []string{"accent"}},
		{"喜欢", []string{"chinese"}},
		{"茶", []string{"chinese"}},
		{"東京", []string{"japanese"}},
		{"чай", []string{"russian"}},
		{"4711", []string{"number"}},
		{"tea", []string{"short", "long"}},
		{"tea 4711", []string{"number", "short", "long"}},
		{"nothing-like-it-here", nil},
		{"", nil},
		{"   ", nil},
		{`"`, nil}, {`'`, nil}, {`*`, nil}, {`()`, nil}, {`^`, nil}, {`-`, nil}, {`:`, nil}, {`;`, nil}, {`%`, nil}, {`\`, nil}, {"\x00", nil},
		{`te*`, nil},
		{`"weird`, []string{"syntax"}},
		{`terms:weird`, []string{"syntax"}},
		{`weird NEAR/2 value`, []string{"syntax"}},
		{`weird) OR (1`, []string{"syntax"}},
		{`weird'; DROP TABLE episodes; --`, []string{"syntax"}},
		{`{weird}`, []string{"syntax"}},
	}
	for _, target := range []store.Target{store.Episodes, store.Facts} {
		t.Run(fmt.Sprintf("words of target %d", target), func(t *testing.T) {
			t.Parallel()
			st := s.open(t)
			var facts []events.Fact
			for i, id := range slices.Sorted(mapKeys(texts)) {
				put(t, st, episode(user("ana", "s"), id, i, texts[id]))
				facts = append(facts, fact(id, i, texts[id]))
			}
			apply(t, st, effect(ana, 1, withFacts(facts...)))
			for _, w := range words {
				got := findText(t, st, scope.Under(ana), w.query, target)
				for _, id := range w.want {
					if !slices.Contains(got, id) {
						t.Errorf("%q found %v, lacks %s", w.query, got, id)
					}
				}
				if w.want == nil && len(got) > 0 {
					t.Errorf("%q found %v, want nothing", w.query, got)
				}
			}
			if got := findText(t, st, scope.Under(ana), "tea", target); len(got) != 2 || got[0] != "short" {
				t.Errorf("tea found %v, want the short text first", got)
			}
			hits := must(st.SearchText(t.Context(), scope.Under(ana), "tea 4711 running", store.SearchQuery{Target: target, Limit: 2}))(t)
			if len(hits) != 2 || hits[0].Score < hits[1].Score || hits[1].Score <= 0 {
				t.Errorf("scores must fall: %+v", hits)
			}
		})
	}
	t.Run("follows the text", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		f := fact("f1", 0, "drinks tea")
		apply(t, st, effect(ana, 1, withFacts(f)))
		apply(t, st, effect(ana, 2, withFacts(next(f, "drinks coffee"))))
		equal(t, "old word", 0, len(findText(t, st, scope.Under(ana), "tea", store.Facts)))
		equal(t, "new word", []string{"f1"}, findText(t, st, scope.Under(ana), "coffee", store.Facts))
		equal(t, "both", []string{"f1"}, findText(t, st, scope.Under(ana), "drinks", store.Facts))
		apply(t, st, effect(ana, 3, withFacts(next(next(f, ""), "drinks tea"))))
		equal(t, "back again", []string{"f1"}, findText(t, st, scope.Under(ana), "tea", store.Facts))
	})
	t.Run("filters are exact", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		testFilters(t, st, s.opts.dimensions(), func(sel scope.Selector, q store.SearchQuery) ([]store.Hit, error) {
			return st.SearchText(t.Context(), sel, "common", q)
		})
	})
	t.Run("every text is found by its own words", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		run := 0
		rapid.Check(t, func(rt *rapid.T) {
			run++
			text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-zA-Z0-9'"*()^:\-_ .@éß茶ア]{0,40}`)).Draw(rt, "text")
			sc := user(fmt.Sprintf("u%d", run), "s")
			if _, err := st.PutEpisode(t.Context(), episode(sc, "1", 0, text)); err != nil {
				rt.Fatal(err)
			}
			hits, err := st.SearchText(t.Context(), scope.Under(sc), text, store.SearchQuery{Target: store.Episodes, Limit: 5})
			if err != nil {
				rt.Fatal(err)
			}
			if searchable := len(lex.Terms(text)) > 0; searchable != (len(hits) == 1) {
				rt.Fatalf("%q: %d hits, terms %q", text, len(hits), lex.Terms(text))
			}
		})
	})
	t.Run("a frequent word finds what a rarer one does not", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		for i := range 30 {
			put(t, st, episode(user("ana", "one"), fmt.Sprint("rare ", i), i, fmt.Sprint("zebra quagga okapi common ", i)))
		}
		for i := range 60 {
			put(t, st, episode(user("ana", "two"), fmt.Sprint("other ", i), 30+i, fmt.Sprint("common thing ", i)))
		}
		search := func(text string, q store.SearchQuery) int {
			q.Target = store.Episodes
			return len(must(st.SearchText(t.Context(), scope.Under(ana), text, q))(t))
		}
		two := "two"
		equal(t, "in another session", 5, search("zebra common", store.SearchQuery{Limit: 5, Session: &two}))
		equal(t, "up to the limit", 40, search("zebra quagga okapi common", store.SearchQuery{Limit: 40}))
	})
	t.Run("scores ignore other tenants", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		score := func() float64 {
			hits := must(st.SearchText(t.Context(), scope.Under(ana), "rare common", store.SearchQuery{Target: store.Episodes, Limit: 1}))(t)
			return hits[0].Score
		}
		put(t, st, episode(user("ana", "s"), "1", 0, "rare common"))
		put(t, st, episode(user("ana", "s"), "2", 0, "common again"))
		before := score()
		for i := range 50 {
			put(t, st, episode(user("bea", "s"), fmt.Sprint(i), 0, "rare rare rare"))
		}
		if after := score(); after != before {
			t.Errorf("score went from %g to %g", before, after)
		}
		var counts store.TextCounts
		must(st.SearchText(t.Context(), scope.Under(ana), "rare common absent", store.SearchQuery{Target: store.Episodes, Limit: 1, Counts: &counts}))(t)
		equal(t, "counts", store.TextCounts{Documents: 2, Terms: 3, Holding: map[string]uint64{"rare": 1, "common": 2, "absent": 0}}, counts)
	})
}

func mapKeys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// testFilters holds a search that matches everything to the filters' meaning,
// with most of what matches filtered out.
func testFilters(t *testing.T, st store.Store, dimensions int, search func(scope.Selector, store.SearchQuery) ([]store.Hit, error)) {
	t.Helper()
	ana := user("ana", "")
	const n = 120
	var facts []events.Fact
	for i := range n {
		session := fmt.Sprintf("s%d", i%3)
		put(t, st, episode(user("ana", session), fmt.Sprintf("e%03d", i), i, "common words"))
		f := fact(fmt.Sprintf("f%03d", i), i, "common words")
		f.SessionIDs = []string{session}
		if i%10 == 0 {
			f.Kind = events.FactOpinion
		}
		if i%2 == 0 {
			until := epoch.Add(3 * time.Hour)
			f.ValidUntil = &until
		}
		if i%20 == 10 {
			f.ArchivedAt = &f.UpdatedAt
		}
		facts = append(facts, f)
	}
	apply(t, st, effect(ana, 1, withFacts(facts...)))
	embedAll(t, st, func(string) []float32 { return axis(dimensions, 0) })
	after, before := epoch.Add(20*time.Minute), epoch.Add(100*time.Minute)
	at := epoch.Add(4 * time.Hour)
	for name, q := range map[string]store.SearchQuery{
		"none":    {},
		"session": {Session: pointer("s1")},
		"nobody":  {Session: pointer("zz")},
		"kinds":   {Kinds: []events.FactKind{events.FactOpinion}},
		"valid":   {ValidAt: at},
		"bounds":  {After: after, Before: before},
		"all":     {Session: pointer("s1"), Kinds: []events.FactKind{events.FactOpinion}, After: after, Before: before, ValidAt: epoch.Add(2 * time.Hour)},
	} {
		for _, limit := range []int{1, 7, 1000} {
			q.Limit, q.Target = limit, store.Facts
			want := 0
			pass := func(f events.Fact) bool {
				return f.ArchivedAt == nil && (q.Session == nil || slices.Contains(f.SessionIDs, *q.Session)) &&
					(q.Kinds == nil || slices.Contains(q.Kinds, f.Kind)) && (q.ValidAt.IsZero() || memory.ValidAt(f, q.ValidAt)) &&
					(q.After.IsZero() || f.EventTime.After(q.After)) && (q.Before.IsZero() || f.EventTime.Before(q.Before))
			}
			for _, f := range facts {
				if pass(f) {
					want++
				}
			}
			hits := must(search(scope.Under(ana), q))(t)
			equal(t, fmt.Sprintf("facts %s, limit %d", name, limit), min(want, limit), len(hits))
			for _, h := range hits {
				if !pass(h.Fact.Fact) {
					t.Errorf("%s: %s does not pass", name, h.Fact.ID)
				}
			}
			q.Target, q.Session = store.Episodes, nil
			hits = must(search(scope.Under(user("ana", "s2")), q))(t)
			want = 0
			for i := range n {
				if e := epoch.Add(time.Duration(i) * time.Minute); i%3 == 2 && (q.After.IsZero() || e.After(after)) && (q.Before.IsZero() || e.Before(before)) {
					want++
				}
			}
			equal(t, fmt.Sprintf("episodes %s, limit %d", name, limit), min(want, limit), len(hits))
			for _, h := range hits {
				if h.Episode.Scope.Session != "s2" {
					t.Errorf("%s: episode of %v", name, h.Episode.Scope)
				}
			}
			q.Session = map[string]*string{"session": pointer("s1"), "nobody": pointer("zz"), "all": pointer("s1")}[name]
		}
	}
	for _, q := range []store.SearchQuery{{Target: store.Facts}, {Limit: 5}, {Target: store.Facts | store.Episodes, Limit: 5}, {Target: store.Facts, Limit: 1001}} {
		if _, err := search(scope.Under(ana), q); err == nil {
			t.Errorf("%+v was taken", q)
		}
	}
}

// axis is the unit vector along one dimension.
func axis(n, i int) []float32 {
	v := make([]float32, n)
	v[i%n] = 1
	return v
}

// embedAll plays the embedding loop until nothing is pending.
func embedAll(t *testing.T, st store.Store, of func(text string) []float32) {
	t.Helper()
	for {
		list := must(st.PendingVectors(t.Context(), 0, 100))(t)
		if len(list) == 0 {
			return
		}
		vectors := make([]store.Vector, len(list))
		for i, p := range list {
			vectors[i] = store.Vector{Ref: p.Ref, Values: of(p.Text)}
		}
		if err := st.PutVectors(t.Context(), vectors); err != nil {
			t.Fatal(err)
		}
	}
}

func randomUnit(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	var sum float64
	for i := range v {
		v[i] = float32(r.NormFloat64())
		sum += float64(v[i]) * float64(v[i])
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}

func testSearchVector(t *testing.T, s suite) {
	n := s.opts.dimensions()
	ana := user("ana", "")
	t.Run("exact", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		run := 0
		rapid.Check(t, func(rt *rapid.T) {
			run++
			r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
			project := fmt.Sprintf("p%d", run)
			vectors := map[string][]float32{}
			for u := range rapid.IntRange(1, 3).Draw(rt, "scopes") {
				sc := scope.Scope{Project: project, User: fmt.Sprintf("u%d", u)}
				var facts []events.Fact
				for i := range rapid.IntRange(1, 12).Draw(rt, "facts") {
					f := fact(fmt.Sprintf("f%d-%d", u, i), i, fmt.Sprintf("%s %d %d", project, u, i))
					vectors[f.ID] = randomUnit(r, n)
					facts = append(facts, f)
				}
				if err := st.Apply(t.Context(), effect(sc, 1, withFacts(facts...)), 1); err != nil {
					rt.Fatal(err)
				}
				var list []store.Vector
				for _, f := range facts {
					list = append(list, store.Vector{Ref: store.VectorRef{Target: store.Facts, Scope: sc, ID: f.ID, Revision: 1}, Values: vectors[f.ID]})
				}
				if err := st.PutVectors(t.Context(), list); err != nil {
					rt.Fatal(err)
				}
			}
			query := randomUnit(r, n)
			cosine := func(id string) (sum float64) {
				for i, x := range vectors[id] {
					sum += float64(x) * float64(query[i])
				}
				return sum
			}
			want := slices.SortedFunc(mapKeys(vectors), func(a, b string) int {
				if cosine(a) > cosine(b) {
					return -1
				}
				return 1
			})
			limit := rapid.IntRange(1, 40).Draw(rt, "limit")
			hits, err := st.SearchVector(t.Context(), scope.Selector{Project: project}, query, store.SearchQuery{Target: store.Facts, Limit: limit})
			if err != nil {
				rt.Fatal(err)
			}
			if got := hitIDs(hits); !slices.Equal(got, want[:min(limit, len(want))]) {
				rt.Fatalf("got %v, want %v", got, want)
			}
			for _, h := range hits {
				if math.Abs(h.Score-cosine(h.Fact.ID)) > 1e-5 {
					rt.Fatalf("score %g, want %g", h.Score, cosine(h.Fact.ID))
				}
			}
		})
	})
	t.Run("filters are exact", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		testFilters(t, st, s.opts.dimensions(), func(sel scope.Selector, q store.SearchQuery) ([]store.Hit, error) {
			return st.SearchVector(t.Context(), sel, axis(n, 0), q)
		})
	})
	t.Run("another dimension", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		put(t, st, episode(user("ana", "s"), "1", 0, "x"))
		embedAll(t, st, func(string) []float32 { return axis(n, 1) })
		_, err := st.SearchVector(t.Context(), scope.Under(ana), axis(n+1, 0), store.SearchQuery{Target: store.Facts, Limit: 1})
		if !errors.Is(err, store.ErrEmbedder) {
			t.Errorf("search: %v, want ErrEmbedder", err)
		}
		ref := store.VectorRef{Target: store.Episodes, Scope: user("ana", "s"), ID: "1", Source: "app"}
		for _, values := range [][]float32{axis(n+1, 0), nil} {
			if err := st.PutVectors(t.Context(), []store.Vector{{Ref: ref, Values: values}}); !errors.Is(err, store.ErrEmbedder) {
				t.Errorf("put: %v, want ErrEmbedder", err)
			}
		}
		bad := axis(n, 0)
		bad[1] = float32(math.NaN())
		if err := st.PutVectors(t.Context(), []store.Vector{{Ref: ref, Values: bad}}); err == nil {
			t.Error("NaN was taken")
		}
	})
}
