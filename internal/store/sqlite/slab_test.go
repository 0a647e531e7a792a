package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"palimpsest/internal/filter"
	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// TestSlab holds both contiguous forms to a map.
func TestSlab(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const n = 3
		vectors, sketches := newSlab(slabKey{}), newSlab(slabKey{})
		vectors.room(1, n, math.MaxInt64)
		sketches.room(1, n, 1)
		want := map[int64]float32{}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			c := change{row: rapid.Int64Range(1, 9).Draw(t, "row")}
			if delete(want, c.row); !rapid.Bool().Draw(t, "drop") {
				x := rapid.Float32Range(-1, 1).Draw(t, "x")
				want[c.row], c.values = x, []float32{x, 0, 0}
			}
			vectors.set(c)
			sketches.set(c)
		}
		query := []float32{1, 0, 0}
		var found scan
		vectors.scan(&found, query)
		if len(found.rows) != len(want) || len(found.scores) != len(want) || len(vectors.values) != n*len(want) {
			t.Fatalf("%d rows, %d values, want %d", len(found.rows), len(vectors.values), len(want))
		}
		for i, row := range found.rows {
			if found.scores[i] != want[row] {
				t.Fatalf("row %d scores %g, want %g", row, found.scores[i], want[row])
			}
		}
		var rows []int64
		for next := 0; next <= wordBits; {
			var part []int64
			part, next, _ = sketches.near(newProbe(query), next, 1, nil)
			rows = append(rows, part...)
		}
		for i := range rows[:max(0, len(rows)-1)] {
			if want[rows[i]] < 0 && want[rows[i+1]] > 0 {
				t.Fatalf("row %d on the side of the query comes behind %d", rows[i+1], rows[i])
			}
		}
		slices.Sort(rows)
		slices.Sort(found.rows)
		if !slices.Equal(rows, found.rows) {
			t.Fatalf("sketches of %v, want %v", rows, found.rows)
		}
	})
}

// TestSketchesFindTheNearest: where memory holds sketches alone, the nearest vectors are
// found, with their exact similarity, and filters are exact however far the rows are
// that match.
func TestSketchesFindTheNearest(t *testing.T) {
	t.Parallel()
	const rows, dimensions, questions, limit = 12_000, 256, 40, 10
	s := openAt(t, Config{Path: filepath.Join(t.TempDir(), "memory.db"), VectorMemory: rows * 300})
	of := scope.Scope{Project: "p", User: "ana"}
	texts := make([]string, rows)
	for i := range texts {
		texts[i] = fmt.Sprint("text ", i)
	}
	fillFacts(t, s, of, texts)
	r := rand.New(rand.NewPCG(5, 6))
	topics := make([][]float32, 50)
	for i := range topics {
		topics[i] = benchVector(r, dimensions)
	}
	near := func() []float32 { // texts of one topic are alike, and their first numbers vary most
		v := benchVector(r, dimensions)
		for i, x := range topics[r.IntN(len(topics))] {
			v[i] = (v[i] + x) / float32(1+i/8)
		}
		return unit(v)
	}
	vectors := make([]store.Vector, rows)
	for i := range vectors {
		vectors[i] = store.Vector{Ref: store.VectorRef{Target: store.Facts, Scope: of, ID: fmt.Sprintf("f%07d", i), Revision: 1}, Values: near()}
	}
	if err := s.PutVectors(t.Context(), vectors); err != nil {
		t.Fatal(err)
	}
	order := make([]int, rows)
	found := 0
	for range questions {
		query := near()
		exact := make([]float32, rows)
		for i := range order {
			order[i], exact[i] = i, dot(query, vectors[i].Values)
		}
		slices.SortFunc(order, func(a, b int) int {
			return compareCandidates(candidate{float64(exact[a]), int64(a)}, candidate{float64(exact[b]), int64(b)})
		})
		hits, err := s.SearchVector(t.Context(), scope.Under(of), query, store.SearchQuery{Target: store.Facts, Limit: limit})
		if err != nil || len(hits) != limit {
			t.Fatalf("%d hits: %v", len(hits), err)
		}
		for _, h := range hits {
			var i int
			if _, err := fmt.Sscanf(h.Fact.ID, "f%d", &i); err != nil || float32(h.Score) != exact[i] {
				t.Fatalf("%s scores %g, want %g: %v", h.Fact.ID, h.Score, exact[i], err)
			}
			if slices.Contains(order[:limit], i) {
				found++
			}
		}
	}
	if sl := slabOf(t, s, of); sl.sketcher == nil || len(sl.values) > 0 {
		t.Fatal("memory holds vectors")
	}
	if share := float64(found) / (questions * limit); share < 0.95 {
		t.Errorf("%.3f of the nearest were found", share)
	}

	query := near()
	farthest := slices.MinFunc(vectors, func(a, b store.Vector) int {
		return compareCandidates(candidate{float64(-dot(query, a.Values)), 1}, candidate{float64(-dot(query, b.Values)), 2})
	})
	hits, err := s.SearchVector(t.Context(), scope.Under(of), query, store.SearchQuery{Target: store.Facts, Limit: limit, Filter: withID(farthest.Ref.ID)})
	if err != nil || len(hits) != 1 || hits[0].Fact.ID != farthest.Ref.ID {
		t.Errorf("the filter kept %d, want %s: %v", len(hits), farthest.Ref.ID, err)
	}
}

// slabOf returns the slab of a scope's facts, nil where none is in memory.
func slabOf(t *testing.T, s *Store, of scope.Scope) *slab {
	t.Helper()
	_, places, err := s.searchPlaces(t.Context(), scope.Under(of), store.SearchQuery{Target: store.Facts, Limit: 1})
	if err != nil || len(places) != 1 {
		t.Fatalf("%d places: %v", len(places), err)
	}
	cache := s.serving.Load().vectorCache
	cache.mu.Lock()
	defer cache.mu.Unlock()
	e, ok := cache.slabs[slabKey{store.Facts, places[0].scopeID}]
	if !ok {
		return nil
	}
	return e.Value.(*slab) //nolint:forcetypeassert // ours
}

func testLoads(t *testing.T) *loads {
	t.Helper()
	l := newLoads()
	t.Cleanup(l.end)
	return l
}

func TestVectorCacheMakesRoom(t *testing.T) {
	t.Parallel()
	const n = 100
	d := newVectorCache(3*(n*4*2+32), testLoads(t))
	loads := map[int64]int{}
	use := func(id int64) {
		t.Helper()
		_, err := d.open(t.Context(), slabKey{store.Facts, id}, func(_ context.Context, sl *slab) error {
			loads[id]++
			sl.add(1, make([]float32, n))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for id := range int64(20) {
		use(id)
		use(0)
	}
	if loads[0] != 1 {
		t.Errorf("the one in use was loaded %d times", loads[0])
	}
	use(1)
	if loads[1] != 2 {
		t.Errorf("the least used was loaded %d times, want 2", loads[1])
	}
	if d.used > d.budget || len(d.slabs) != d.recent.Len() {
		t.Errorf("%d bytes of %d in %d slabs", d.used, d.budget, len(d.slabs))
	}
}

// TestLoadOutlivesAnImpatientCaller: a scope that takes longer to load than a search may
// take is loaded nonetheless, and a load ends with the store.
func TestLoadOutlivesAnImpatientCaller(t *testing.T) {
	t.Parallel()
	l := newLoads()
	d := newVectorCache(1<<20, l)
	calls, proceed := 0, make(chan struct{})
	load := func(ctx context.Context, sl *slab) error {
		calls++
		select {
		case <-proceed:
			sl.add(7, []float32{1})
		case <-ctx.Done():
		}
		return ctx.Err()
	}
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.open(impatient, slabKey{store.Facts, 1}, load); !errors.Is(err, context.Canceled) {
		t.Errorf("the impatient caller: %v", err)
	}
	close(proceed)
	sl, err := d.open(t.Context(), slabKey{store.Facts, 1}, load)
	if err != nil || len(sl.rows) != 1 || calls != 1 {
		t.Errorf("the next caller: %v, %d calls", err, calls)
	}
	proceed = make(chan struct{})
	if _, err := d.open(impatient, slabKey{store.Facts, 2}, load); !errors.Is(err, context.Canceled) {
		t.Errorf("the impatient caller: %v", err)
	}
	l.end()
	if len(d.slabs) != 1 {
		t.Errorf("%d slabs, want the one that was loaded", len(d.slabs))
	}
	if _, err := d.open(t.Context(), slabKey{store.Facts, 3}, load); !errors.Is(err, store.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

// TestChangesDuringALoad: a slab has what was committed while it was loaded, whether the
// load read it or not.
func TestChangesDuringALoad(t *testing.T) {
	t.Parallel()
	for name, budget := range map[string]int64{"vectors": math.MaxInt64, "sketches": 1} {
		d := newVectorCache(math.MaxInt64, testLoads(t))
		key := slabKey{store.Facts, 1}
		sl, err := d.open(t.Context(), key, func(_ context.Context, sl *slab) error {
			sl.room(3, 1, budget)
			sl.add(1, []float32{1})
			d.apply(key, change{1, []float32{-1}}) // read, then changed
			d.apply(key, change{row: 2})           // dropped, then not read
			sl.add(3, []float32{1})
			d.apply(key, change{row: 3}) // read, then dropped
			d.apply(key, change{4, []float32{-1}})
			sl.add(4, []float32{-1}) // stored, then read
			d.apply(key, change{5, []float32{-1}})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		d.apply(key, change{row: 5})
		var rows []int64
		if sl.sketcher != nil {
			rows, _, _ = sl.near(newProbe([]float32{-1}), 0, 9, nil)
		} else {
			var found scan
			sl.scan(&found, []float32{-1})
			if rows = found.rows; !slices.Equal(found.scores, []float32{1, 1}) {
				t.Errorf("%s: scores %v", name, found.scores)
			}
		}
		if slices.Sort(rows); !slices.Equal(rows, []int64{1, 4}) {
			t.Errorf("%s: rows %v", name, rows)
		}
	}
}

// TestLargeLoadsTakeTurns: loads take a bounded part of memory, however many were begun
// by searches that have ended, and small scopes do not wait for large ones.
func TestLargeLoadsTakeTurns(t *testing.T) {
	t.Parallel()
	const budget = 1 << 20
	d := newVectorCache(budget, testLoads(t))
	var ends []func()
	for range largeLoads {
		done, err := d.turn(t.Context(), budget)
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, done)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.turn(ended, budget); !errors.Is(err, context.Canceled) {
		t.Errorf("one more large load: %v", err)
	}
	if _, err := d.turn(ended, budget/largePart); err != nil {
		t.Errorf("a small load: %v", err)
	}
	ends[0]()
	if done, err := d.turn(t.Context(), budget); err != nil {
		t.Errorf("after one has ended: %v", err)
	} else {
		done()
	}
}

func withID(id string) *store.Filter {
	return &store.Filter{Expr: filter.OneOf(filter.Memory, "id", id)}
}
